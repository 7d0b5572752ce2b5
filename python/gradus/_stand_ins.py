"""Defines names that programs import but Gradus does not implement. Importing such a name works. Calling it, or inheriting from it, raises an error
that says what is absent and what to use instead.

_absent.py lists the absent modules. No such names are defined for nn.functional, because programs use hasattr to find out if it has a newer function.
"""

_ATTENTION = "there is one implementation of attention, which serves every case"
_CUDA = "there is no CUDA; programs ask gradus.cuda.is_available() first"
_DEVICES = "there is one process with one device"
_EXPORT = "models cannot be exported; save a state_dict with gradus.save"
_FUZZER = "random arguments are not drawn; measure the cases you list with Timer"
_INSTRUCTIONS = "instructions are not counted from inside; run the program under valgrind"
_PIPES = "data pipes are not part of Gradus; use an IterableDataset or a Dataset"
_PROFILER = "the profiler is gradus.profiler, which counts and times the calls of a thread"
_SAVED = "what is saved for backward is not packed by functions; use utils.checkpoint to save memory"
_SELECTIVE = "a checkpoint computes everything again; checkpoint smaller parts to keep what is between them"
_SCRIPT = "there is no TorchScript"

# Maps each module to {reason: names separated by spaces}. Calling one of the names raises NotImplementedError with that reason.
_NAMES = {
    "autograd": {"write an autograd.Function whose arguments are tensors": "NestedIOFunction",
                 "gradients keep the layout they are computed in": "enforce_grad_layout_policy"},
    "autograd.function": {"write an autograd.Function whose arguments are tensors": "NestedIOFunction"},
    "autograd.grad_mode": {"gradients keep the layout they are computed in": "enforce_grad_layout_policy"},
    "autograd.gradcheck": {"use gradcheck, or gradus.func.jacrev for a Jacobian":
                           "get_analytical_jacobian get_numerical_jacobian get_numerical_jacobian_wrt_specific_input"},
    "autograd.graph": {_SAVED: "allow_mutation_on_saved_tensors region_activation_memory_budget save_on_cpu",
                       "versions count what operators write": "increment_version",
                       _DEVICES: "set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch"},
    "autograd.profiler": {_PROFILER: "EnforceUnique EventList FunctionEvent KinetoStepTracker MemRecordsAcc load_nvprof parse_nvprof_trace"},
    "cuda": {_CUDA: "CUDAGraph CUDAPluggableAllocator Event ExternalStream MemPool Stream StreamContext can_device_access_peer current_blas_handle default_stream "
                    "device device_of get_per_process_memory_fraction graph graph_pool_handle initial_seed ipc_collect is_current_stream_capturing "
                    "make_graphed_callables max_memory_cached memory_cached memory_snapshot memory_stats memory_summary memory_usage power_draw "
                    "reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats set_per_process_memory_fraction "
                    "set_rng_state set_rng_state_all set_stream stream temperature utilization"},
    "distributed": {_DEVICES: "AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BackendConfig BarrierOptions BroadcastOptions BuiltinCommHookType DeviceMesh "
                              "GatherOptions GradBucket ProcessGroupGloo ReduceOptions ReduceScatterOptions Reducer ScatterOptions get_backend_config init_device_mesh "
                              "record_comm register_rendezvous_handler rendezvous shrink_group split_group"},
    "fx": {"programs cannot be traced": "CodeGen Graph GraphModule Interpreter Node PH ProxyableClassMeta Proxy Tracer Transformer has_side_effect map_arg "
                                         "replace_pattern symbolic_trace"},
    "func": {"print the tensor, which shows what it wraps": "debug_unwrap",
             "operators in place are differentiated and batched as they are, and need no rewriting": "functionalize",
             "use the einops package, or permute and reshape": "rearrange"},
    "jit": {_SCRIPT: "ONNXTracedModule RecursiveScriptClass TracedModule export_opnames jit_module_from_flatbuffer last_executed_optimized_graph "
                     "run_frozen_optimizations save_jit_module_to_flatbuffer"},
    "nn.attention": {_ATTENTION: "SDPAParams activate_flash_attention_impl can_use_efficient_attention can_use_flash_attention current_flash_attention_impl "
                                 "list_flash_attention_impls register_flash_attention_impl restore_flash_attention_impl"},
    "nn.attention.bias": {_ATTENTION: "SDPAParams can_use_efficient_attention can_use_flash_attention is_flash_attention_available"},
    "onnx": {_EXPORT: "ExportableModule InputObserver JitScalarType ONNXProgram TensorProtoDataType"},
    "overrides": {"a mode calls the function it is given": "enable_reentrant_dispatch redispatch_function"},
    "profiler": {_PROFILER: "DeviceType ExecutionTraceObserver itt"},
    "testing": {"it looks at compiled graphs, and nothing is compiled": "FileCheck"},
    "utils": {"measure with utils.benchmark": "ThroughputBenchmark", "there is no C++ to trace": "get_cpp_backtrace",
              "a plug-in registers its device under its own name": "generate_methods_for_privateuse1_backend rename_privateuse1_backend"},
    "utils._pytree": {"pickle the TreeSpec": "pytree_to_str str_to_pytree treespec_dumps treespec_loads",
                      "register_pytree_node makes its objects containers of nothing": "ConstantNode is_constant_class register_constant"},
    "utils.benchmark": {_INSTRUCTIONS: "CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts",
                        _FUZZER: "FuzzedParameter FuzzedSparseTensor FuzzedTensor Fuzzer ParameterAlias"},
    "utils.checkpoint": {_SELECTIVE: "CheckpointFunction GraphExecGroup SelectiveCheckpointContext create_selective_checkpoint_contexts"},
    "utils.data": {_PIPES: "DFIterDataPipe DataChunk IterDataPipe MapDataPipe argument_validation functional_datapipe guaranteed_datapipes_determinism "
                           "non_deterministic runtime_validation runtime_validation_disabled"},
}


def _stand_in(module, name, reason):
    """Returns a class called `name` that raises NotImplementedError when it is called or subclassed."""

    def refuse(*args, **kwargs):
        raise NotImplementedError(f"{module}.{name}: {reason}")

    return type(name, (), {"__module__": module, "__doc__": f"NotImplementedError: {reason}.", "__new__": refuse, "__init_subclass__": refuse})


def of_module(module):
    """Returns a ``__getattr__`` function for the module named `module`. For a name listed in _NAMES, the function returns a class that raises
    NotImplementedError when called or subclassed. For any other name it raises AttributeError."""
    reasons = {name: reason for reason, names in _NAMES[module.partition(".")[2]].items() for name in names.split()}
    made = {}

    def __getattr__(name):
        if name not in reasons:
            raise AttributeError(f"module '{module}' has no attribute '{name}'", name=name)
        if name not in made:
            made[name] = _stand_in(module, name, reasons[name])
        return made[name]

    return __getattr__
