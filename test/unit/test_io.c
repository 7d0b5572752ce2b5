/* Tests saving and loading named tensors: the bytes of written and read files, calls that are refused before anything is written, and loading into
 * existing tensors. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/shape.h"
#include "core/tensor.h"
#include "folder.h"
#include "protected.h"

static const char path[] = "model.safetensors";

static int remove_file(void **state)
{
    unlink(path);
    return leave_folder(state);
}

/* Checks that the pending error has this code and that its text consists of `before`, the path of the file, and `after`. Clears the error. */
static void expect_path_error(grd_error_code code, const char *before, const char *after)
{
    char text[400];
    snprintf(text, sizeof text, "%s%s%s", before, path, after);
    expect_error(code, text);
}

static grd_tensor *floats(grd_dims sizes)
{
    return grd_to(grd_add(iota(sizes), grd_number(grd_int(1))), .dtype = GRD_FLOAT32);
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------------------------------- */

/* The bytes that version 0.8 of the safetensors package writes for the tensors of the next test. */
static const char recorded[] =
    "\x08\x01\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"},\"\xc3\x9f\\n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
    "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[8,8]},\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]}"
    ","
    "\"flags\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[32,35]}}  "
    "\x07\0\0\0\0\0\0\0\0\0\x80?\0\0\0@\0\0@@\0\0\x80@\0\0\xa0@\0\0\xc0@\x01\0\x01";

static grd_tensor *flags(void)
{
    static const uint8_t values[] = {1, 0, 1};
    return grd_from_data(values, grd_dims(3), GRD_BOOL);
}

static void saved_files_equal_those_of_the_safetensors_package(void **state)
{
    (void)state;
    const grd_named_tensors model =
        grd_named_tensors({"w", floats(grd_dims(2, 3))}, {"\xc3\x9f\n", grd_full(GRD_NO_DIMS, grd_int(7), .dtype = GRD_INT64)},
                          {"empty", grd_zeros(grd_dims(0, 2))}, {"flags", flags()});
    const grd_tensor *bytes = grd_save_to_tensor(model, grd_named_texts({"format", "pt"}));
    assert_int_equal(grd_numel(bytes), sizeof recorded - 1);
    assert_memory_equal(grd_data(bytes), recorded, sizeof recorded - 1);
    assert_true(grd_save_with_metadata(path, model, grd_named_texts({"format", "pt"})));
    char content[sizeof recorded];
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(content, 1, sizeof content, file), sizeof recorded - 1);
    fclose(file);
    assert_memory_equal(content, recorded, sizeof recorded - 1);
    assert_int_equal(count_files(), 1);
}

static void a_tensor_file_reads_single_tensors(void **state)
{
    (void)state;
    grd_tensor_file *file = grd_tensor_file_over(recorded, sizeof recorded - 1);
    static const char *const names[] = {"empty", "flags", "w", "\xc3\x9f\n"};
    static const grd_dtype dtypes[] = {GRD_FLOAT32, GRD_BOOL, GRD_FLOAT32, GRD_INT64};
    static const int64_t dimensions[] = {2, 1, 2, 0}, offsets[] = {8, 32, 8, 0};
    assert_int_equal(grd_tensor_file_count(file), 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(grd_tensor_file_name(file, i), names[i]);
        assert_int_equal(grd_tensor_file_find(file, names[i]), i);
        assert_int_equal(grd_tensor_file_dtype(file, i), dtypes[i]);
        assert_int_equal(grd_tensor_file_sizes(file, i).n, dimensions[i]);
        assert_int_equal(grd_tensor_file_offset(file, i), offsets[i]);
        assert_true(grd_dims_equal(grd_tensor_file_sizes(file, i), grd_sizes(grd_tensor_file_read(file, names[i]))));
    }
    assert_true(grd_equal(grd_tensor_file_read(file, "w"), floats(grd_dims(2, 3))));
    assert_true(grd_equal(grd_tensor_file_read(file, "flags"), flags()));
    const grd_named_texts metadata = grd_tensor_file_metadata(file);
    assert_int_equal(metadata.n, 1);
    assert_string_equal(metadata.data[0].name, "format");
    assert_string_equal(metadata.data[0].text, "pt");
    assert_int_equal(grd_tensor_file_find(file, "x"), -1);
    assert_true(grd_ok());
    assert_true(grd_is_failed(grd_tensor_file_read(file, "x")));
    expect_error(GRD_ERROR_RUNTIME, "cannot load safetensors from memory: it has no tensor 'x'");
    assert_null(grd_tensor_file_name(file, 4));
    expect_error(GRD_ERROR_INDEX, "grd_tensor_file: safetensors from memory has 4 tensors, none has the number 4");
    assert_int_equal(grd_tensor_file_offset(file, -1), -1);
    expect_error(GRD_ERROR_INDEX, "grd_tensor_file: safetensors from memory has 4 tensors, none has the number -1");
    grd_tensor_file_close(file);
}

static void every_dtype_is_saved_and_loaded(void **state)
{
    (void)state;
    for (int i = GRD_BOOL; i <= GRD_FLOAT8_E5M2; i++) {
        const grd_dtype dtype = (grd_dtype)i;
        if (dtype == GRD_COMPLEX32 || dtype == GRD_COMPLEX128)
            continue;
        grd_tensor *x = grd_to(grd_arange(grd_int(3)), .dtype = dtype);
        grd_save(path, grd_named_tensors({"x", x}));
        grd_tensor *y = grd_named_tensor_find(grd_load(path), "x");
        assert_string_equal(grd_error_message(), "");
        assert_int_equal(grd_tensor_dtype(y), dtype);
        assert_memory_equal(grd_data(x), grd_data(y), (size_t)(3 * grd_dtype_size(dtype)));
    }
}

static void strided_tensors_are_saved_contiguously(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(floats(grd_dims(4, 3)), true), *view = grd_flip(grd_transpose(x, 0, 1), grd_dims(0));
    grd_save(path, grd_named_tensors({"view", grd_slice(view, .step = 2)}, {"wide", grd_expand(grd_select(x, 0, 1), grd_dims(2, 3))}));
    const grd_named_tensors loaded = grd_load(path);
    assert_int_equal(loaded.n, 2);
    assert_true(grd_equal(loaded.data[0].tensor, grd_slice(view, .step = 2)));
    assert_true(grd_equal(loaded.data[1].tensor, grd_expand(grd_select(x, 0, 1), grd_dims(2, 3))));
    assert_false(grd_requires_grad(loaded.data[0].tensor));
    assert_true(grd_grad_enabled());
}

static void names_and_metadata_are_escaped(void **state)
{
    (void)state;
    char every[0x80];
    for (int i = 1; i < 0x80; i++)
        every[i - 1] = (char)i;
    every[0x7f] = '\0';
    assert_true(grd_save_with_metadata(path, grd_named_tensors({every, flags()}, {"", flags()}),
                                       grd_named_texts({"b", every}, {every, ""}, {"a", "\xf0\x9f\x98\x80"})));
    grd_tensor_file *file = grd_tensor_file_open(path);
    const grd_named_texts metadata = grd_tensor_file_metadata(file);
    assert_int_equal(metadata.n, 3);
    assert_string_equal(metadata.data[0].name, every);
    assert_string_equal(metadata.data[1].text, "\xf0\x9f\x98\x80");
    assert_string_equal(metadata.data[2].text, every);
    assert_int_equal(grd_tensor_file_find(file, every), 1);
    assert_int_equal(grd_tensor_file_find(file, ""), 0);
    grd_tensor_file_close(file);
}

static void an_empty_list_is_saved_and_loaded(void **state)
{
    (void)state;
    assert_true(grd_save(path, (grd_named_tensors){NULL, 0}));
    assert_int_equal(grd_load(path).n, 0);
    assert_true(grd_load_into(path, (grd_named_tensors){NULL, 0}));
    assert_true(grd_ok());
}

static void device_tensors_are_saved_and_loaded(void **state)
{
    (void)state;
    const grd_device vault = protected_register("vault", grd_cpu_fallback);
    grd_tensor *x = floats(grd_dims(2, 3)), *there = grd_to(x, .device = vault);
    assert_true(grd_save(path, grd_named_tensors({"x", grd_transpose(there, 0, 1)})));
    assert_true(grd_equal(grd_named_tensor_find(grd_load(path), "x"), grd_transpose(x, 0, 1)));
    assert_true(grd_load_into(path, grd_named_tensors({"x", grd_transpose(there, 0, 1)})));
    assert_true(grd_equal(grd_to(there, .device = GRD_CPU), x));
}

/* A file written by another library may have any nonzero byte for True. It is read as 1. */
static void nonzero_bool_bytes_are_read_as_1(void **state)
{
    (void)state;
    char bytes[sizeof recorded];
    memcpy(bytes, recorded, sizeof recorded);
    bytes[sizeof recorded - 2] = 7;
    grd_tensor_file *file = grd_tensor_file_over(bytes, sizeof recorded - 1);
    assert_memory_equal(grd_data(grd_tensor_file_read(file, "flags")), "\1\0\1", 3);
    grd_tensor_file_close(file);
}

/* ---- Loading into tensors ---------------------------------------------------------------------------------------------------------------- */

static void load_into_fills_given_tensors(void **state)
{
    (void)state;
    grd_tensor *w = grd_set_requires_grad(grd_zeros(grd_dims(2, 3)), true), *b = grd_zeros(grd_dims(3, 2)),
               *column = grd_transpose(b, 0, 1);
    grd_save(path, grd_named_tensors({"w", floats(grd_dims(2, 3))}, {"b", floats(grd_dims(2, 3))}, {"other", flags()}));
    assert_true(grd_load_into(path, grd_named_tensors({"w", w}, {"b", column})));
    assert_true(grd_equal(w, floats(grd_dims(2, 3))) && grd_equal(column, w) && grd_requires_grad(w) && grd_grad_fn(w) == NULL);
}

static void a_failed_load_into_changes_no_tensor(void **state)
{
    (void)state;
    grd_tensor *w = grd_zeros(grd_dims(2, 3));
    grd_save(path, grd_named_tensors({"w", floats(grd_dims(2, 3))}, {"b", flags()}));
    assert_false(grd_load_into(path, grd_named_tensors({"w", w}, {"c", flags()})));
    expect_path_error(GRD_ERROR_RUNTIME, "cannot load '", "': it has no tensor 'c'");
    assert_false(grd_load_into(path, grd_named_tensors({"w", w}, {"b", grd_zeros(grd_dims(3))})));
    expect_path_error(GRD_ERROR_RUNTIME, "cannot load '", "': tensor 'b' is bool in the file and float32 here");
    assert_false(grd_load_into(path, grd_named_tensors({"w", w}, {"b", grd_zeros(grd_dims(3, 1))})));
    expect_path_error(GRD_ERROR_RUNTIME, "cannot load '", "': tensor 'b' has sizes [3] in the file and [3, 1] here");
    assert_false(grd_load_into(path, grd_named_tensors({"w", w}, {NULL, w})));
    expect_error(GRD_ERROR_TYPE, "grd_load_into: a name of argument 'tensors' is NULL");
    assert_false(grd_load_into(path, (grd_named_tensors){NULL, 1}));
    expect_error(GRD_ERROR_TYPE, "grd_load_into: argument 'tensors' is no list: its length is 1 and its data NULL");
    assert_true(grd_is_failed(grd_named_tensor_find((grd_named_tensors){NULL, 1}, "a")));
    expect_error(GRD_ERROR_RUNTIME, "grd_named_tensor_find: none of the 1 tensors is named 'a'");
    assert_true(grd_is_failed(grd_named_tensor_find(grd_named_tensors({NULL, w}), "a")));
    expect_error(GRD_ERROR_RUNTIME, "grd_named_tensor_find: none of the 1 tensors is named 'a'");
    assert_false(grd_load_into(path, grd_named_tensors({"w", w}, {"b", NULL})));
    expect_error(GRD_ERROR_TYPE, "grd_load_into: a tensor of argument 'tensors' is NULL");
    assert_true(grd_item_int64(grd_any(w)) == 0);
}

/* ---- Refused calls ------------------------------------------------------------------------------------------------------------------------- */

/* Checks that saving fails with this error and leaves the existing file unchanged. */
static void expect_refused(grd_named_tensors tensors, grd_named_texts metadata, grd_error_code code, const char *text)
{
    assert_false(grd_save_with_metadata(path, tensors, metadata));
    expect_error(code, text);
    assert_true(grd_is_failed(grd_save_to_tensor(tensors, metadata)));
    expect_error(code, text);
    assert_int_equal(grd_load(path).n, 1);
    assert_int_equal(count_files(), 1);
}

static void invalid_tensors_and_metadata_are_not_saved(void **state)
{
    (void)state;
    const grd_named_texts none = {NULL, 0};
    grd_tensor *x = grd_ones(grd_dims(2));
    grd_save(path, grd_named_tensors({"x", x}));
    expect_refused(grd_named_tensors({"x", x}, {NULL, x}), none, GRD_ERROR_TYPE, "grd_save: a name of a tensor is NULL");
    expect_refused(grd_named_tensors({"x", NULL}), none, GRD_ERROR_TYPE, "grd_save: tensor 'x' is NULL");
    expect_refused(grd_named_tensors({"a", x}, {"b", x}, {"a", x}), none, GRD_ERROR_RUNTIME, "grd_save: two tensors are named 'a'");
    expect_refused(grd_named_tensors({"\xc0\x80", x}), none, GRD_ERROR_RUNTIME, "grd_save: a name of a tensor is not UTF-8");
    expect_refused(grd_named_tensors({"__metadata__", x}), none, GRD_ERROR_RUNTIME,
                   "grd_save: no tensor can be named '__metadata__', which is the metadata");
    expect_refused(grd_named_tensors({"x", grd_zeros(grd_dims(1), .dtype = GRD_COMPLEX128)}), none, GRD_ERROR_RUNTIME,
                   "grd_save: tensor 'x' is complex128, a dtype that safetensors does not have");
    expect_refused(grd_named_tensors({"x", grd_zeros(grd_dims(1), .device = GRD_META)}), none, GRD_ERROR_RUNTIME,
                   "grd_save: tensor 'x' is on the meta device and has no data");
    expect_refused(grd_named_tensors({"x", x}), grd_named_texts({"a", "1"}, {"a", "2"}), GRD_ERROR_RUNTIME,
                   "grd_save: the name 'a' is twice in the metadata");
    expect_refused(grd_named_tensors({"x", x}), grd_named_texts({"a", NULL}), GRD_ERROR_TYPE, "grd_save: a text in the metadata is NULL");
    expect_refused(grd_named_tensors({"x", x}), grd_named_texts({"\xff", ""}), GRD_ERROR_RUNTIME,
                   "grd_save: a name in the metadata is not UTF-8");
    expect_refused((grd_named_tensors){NULL, 2}, none, GRD_ERROR_TYPE,
                   "grd_save: argument 'tensors' is no list: its length is 2 and its data NULL");
    expect_refused((grd_named_tensors){NULL, -1}, none, GRD_ERROR_TYPE,
                   "grd_save: argument 'tensors' is no list: its length is -1 and its data NULL");
    expect_refused(grd_named_tensors({"x", x}), (grd_named_texts){NULL, 1}, GRD_ERROR_TYPE,
                   "grd_save: argument 'metadata' is no list: its length is 1 and its data NULL");
    assert_false(grd_save(NULL, grd_named_tensors({"x", x})));
    expect_error(GRD_ERROR_TYPE, "grd_save: argument 'path' must not be NULL");
}

static void missing_and_irregular_files_are_refused(void **state)
{
    (void)state;
    assert_null(grd_tensor_file_open("/tmp/gradus-io-absent"));
    assert_int_equal(grd_error_system(), ENOENT);
    expect_error(GRD_ERROR_IO, "cannot load '/tmp/gradus-io-absent': No such file or directory");
    assert_int_equal(grd_error_system(), 0);
    assert_null(grd_tensor_file_open("/tmp"));
    assert_int_equal(grd_error_system(), EISDIR);
    expect_error(GRD_ERROR_IO, "cannot load '/tmp': Is a directory");
    assert_null(grd_tensor_file_open("/dev/null"));
    expect_error(GRD_ERROR_RUNTIME, "cannot load '/dev/null': it is no regular file");
    assert_null(grd_tensor_file_open(NULL));
    expect_error(GRD_ERROR_TYPE, "grd_tensor_file_open: argument 'path' must not be NULL");
    assert_null(grd_tensor_file_over(NULL, 0));
    expect_error(GRD_ERROR_TYPE, "grd_tensor_file_over: argument 'data' must not be NULL");
    assert_int_equal(grd_load("/tmp/gradus-io-absent").n, 0);
    /* While the error is pending, no call does anything. */
    assert_int_equal(grd_tensor_file_count(NULL), 0);
    assert_true(grd_is_failed(grd_tensor_file_read(NULL, "x")));
    assert_false(grd_save(path, (grd_named_tensors){NULL, 0}));
    expect_error(GRD_ERROR_IO, "cannot load '/tmp/gradus-io-absent': No such file or directory");
    assert_true(grd_is_failed(grd_tensor_file_read(NULL, "x")));
    expect_error(GRD_ERROR_TYPE, "grd_tensor_file_read: argument 'file' must not be NULL");
    assert_true(grd_is_failed(grd_named_tensor_find((grd_named_tensors){NULL, 0}, "x")));
    expect_error(GRD_ERROR_RUNTIME, "grd_named_tensor_find: none of the 0 tensors is named 'x'");
}

static void a_file_truncated_after_opening_is_refused(void **state)
{
    (void)state;
    grd_save(path, grd_named_tensors({"x", grd_ones(grd_dims(1000))}));
    grd_tensor_file *file = grd_tensor_file_open(path);
    assert_int_equal(truncate(path, 1000), 0);
    assert_true(grd_is_failed(grd_tensor_file_read(file, "x")));
    expect_path_error(GRD_ERROR_RUNTIME, "cannot load '", "': it has become shorter since it was opened");
    grd_tensor_file_close(file);
}

/* ---- Rules of the format --------------------------------------------------------------------------------------------------------------------- */

static const struct damage {
    const char *header;
    int data; /* number of bytes after the header */
    const char *error;
} damages[] = {
#define ONE "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}"
#define TENSOR(dtype, shape, offsets) "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
    {ONE "}", 4, NULL},
    {ONE "} \n\t\r", 4, NULL},
    {"{ \"a\" : { \"shape\" : [ 4 ] , \"data_offsets\" : [ 0 , 4 ] , \"dtype\" : \"U8\" } } ", 4, NULL},
    {"{\"\\u00df\\uD83D\\ude00\\/\":{\"dtype\":\"\\u00558\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, NULL},
    {ONE "}", 5, "its tensors have 4 bytes, but 5 bytes follow the header"},
    {ONE "}", 3, "its tensors have 4 bytes, but 3 bytes follow the header"},
    {"{}", 1, "its tensors have 0 bytes, but 1 bytes follow the header"},
    {"", 0, "expected '{' at byte 0 of the header"},
    {" {}", 0, "expected '{' at byte 0 of the header"},
    {"[]", 0, "expected '{' at byte 0 of the header"},
    {"{}}", 0, "text behind the object at byte 2 of the header"},
    {"{", 0, "expected '\"' at byte 1 of the header"},
    {"{\"", 0, "the string does not end at byte 2 of the header"},
    {"{\"a", 0, "the string does not end at byte 3 of the header"},
    {"{\"a\\", 0, "an escape that JSON does not have at byte 4 of the header"},
    {"{\"\\x\"", 0, "an escape that JSON does not have at byte 4 of the header"},
    {"{\"\\u12", 0, "expected four hexadecimal digits at byte 6 of the header"},
    {"{\"\\u123g\"", 0, "expected four hexadecimal digits at byte 7 of the header"},
    {"{\"\\u0000\"", 0, "a string holds the character NUL at byte 8 of the header"},
    {"{\"\\ud800\"", 0, "a surrogate without its other half at byte 8 of the header"},
    {"{\"\\udc00\"", 0, "a surrogate without its other half at byte 8 of the header"},
    {"{\"\\ud800\\u0041\"", 0, "a surrogate without its other half at byte 14 of the header"},
    {"{\"\n\"", 0, "a string with the control character 0x0a at byte 2 of the header"},
    {"{\"\x80\"", 0, "bytes that are not UTF-8 at byte 2 of the header"},
    {"{\"\xc0\xaf\"", 0, "bytes that are not UTF-8 at byte 2 of the header"},
    {"{\"\xed\xa0\x80\"", 0, "bytes that are not UTF-8 at byte 2 of the header"},
    {"{\"\xe0\x9f\xbf\"", 0, "bytes that are not UTF-8 at byte 2 of the header"},
    {"{\"\xf0\x8f\xbf\xbf\"", 0, "bytes that are not UTF-8 at byte 2 of the header"},
    {"{\"\xf4\x90\x80\x80\"", 0, "bytes that are not UTF-8 at byte 2 of the header"},
    {"{\"\xf1\x80\x80", 0, "bytes that are not UTF-8 at byte 2 of the header"},
    {"{\"\xf1\x80\x41\x80\"", 0, "bytes that are not UTF-8 at byte 2 of the header"},
    {"{\"a\"}", 0, "expected ':' at byte 4 of the header"},
    {"{\"a\":1}", 0, "expected '{' at byte 5 of the header"},
    {"{'a':1}", 0, "expected '\"' at byte 1 of the header"},
    {ONE ",}", 4, "expected '\"' at byte 53 of the header"},
    {ONE, 4, "expected ',' or '}' at byte 52 of the header"},
    {ONE "; ", 4, "expected ',' or '}' at byte 52 of the header"},
    {ONE ",\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}}", 4, "the name 'a' is there twice"},
    {ONE ",\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
     "tensor 'b' begins at byte 0 of the data, but the one before it ends at byte 4"},
    {ONE ",\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[5,9]}}", 9,
     "tensor 'b' begins at byte 5 of the data, but the one before it ends at byte 4"},
    {"{\"a\":{}}", 0, "tensor 'a' lacks one of the fields dtype, shape and data_offsets at byte 7 of the header"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0,
     "tensor 'a' lacks one of the fields dtype, shape and data_offsets at byte 31 of the header"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, "tensor 'a' has the field 'dtype', which is there twice at byte 26 of the header"},
    {"{\"a\":{\"type\":1}}", 0, "tensor 'a' has the field 'type', which is not known at byte 12 of the header"},
    {TENSOR("F33", "[1]", "[0,4]"), 4, "tensor 'a' has the dtype 'F33', which is not known at byte 19 of the header"},
    {TENSOR("f32", "[1]", "[0,4]"), 4, "tensor 'a' has the dtype 'f32', which is not known at byte 19 of the header"},
    {TENSOR("F32", "[1,]", "[0,4]"), 4, "expected an unsigned integer at byte 31 of the header"},
    {TENSOR("F32", "[-1]", "[0,4]"), 4, "expected an unsigned integer at byte 29 of the header"},
    {TENSOR("F32", "[01]", "[0,4]"), 4, "expected an unsigned integer at byte 31 of the header"},
    {TENSOR("F32", "[1.0]", "[0,4]"), 4, "expected ',' or ']' at byte 30 of the header"},
    {TENSOR("F32", "[1e0]", "[0,4]"), 4, "expected ',' or ']' at byte 30 of the header"},
    {TENSOR("F32", "1", "[0,4]"), 4, "expected '[' at byte 28 of the header"},
    {TENSOR("F32", "[9223372036854775808]", "[0,4]"), 4, "a size of tensor 'a' is above 2^63 - 1 at byte 48 of the header"},
    {TENSOR("F32", "[18446744073709551616]", "[0,4]"), 4, "the integer does not fit into 64 bits at byte 48 of the header"},
    {TENSOR("F32", "[1]", "[0]"), 4, "expected ',' at byte 49 of the header"},
    {TENSOR("F32", "[1]", "[0,4,8]"), 4, "expected ']' at byte 51 of the header"},
    {TENSOR("F32", "[1]", "[0,3]"), 3, "tensor 'a' needs 4 bytes for its dtype and sizes, but its data_offsets are [0, 3]"},
    {TENSOR("F32", "[1]", "[4,0]"), 4, "tensor 'a' needs 4 bytes for its dtype and sizes, but its data_offsets are [4, 0]"},
    {TENSOR("F32", "[1]", "[1,5]"), 5, "tensor 'a' begins at byte 1 of the data, but the one before it ends at byte 0"},
    {TENSOR("F32", "[1]", "[18446744073709551612,18446744073709551615]"), 4,
     "tensor 'a' needs 4 bytes for its dtype and sizes, but its data_offsets are [18446744073709551612, 18446744073709551615]"},
    {TENSOR("F32", "[4611686018427387904]", "[0,0]"), 0, "the sizes of tensor 'a' multiply to more than 2^64 bytes"},
    {TENSOR("U8", "[4294967296,4294967296]", "[0,0]"), 0, "the sizes of tensor 'a' multiply to more than 2^64 bytes"},
    {TENSOR("U8",
            "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
            "1,1,1]",
            "[0,1]"),
     1, "tensor 'a' has more than 64 dimensions at byte 156 of the header"},
    {"{\"__metadata__\":{}}", 0, NULL},
    {"{\"__metadata__\":{\"a\":\"b\",\"b\":\"\"}}", 0, NULL},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ is there twice at byte 34 of the header"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "expected '\"' at byte 21 of the header"},
    {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, "the name 'a' is there twice"},
    {"{\"__metadata__\":null}", 0, "expected '{' at byte 16 of the header"},
    {"{\"__metadata__\":{\"a\":{}}}", 0, "expected '\"' at byte 21 of the header"},
};

/* Opens a file held in a heap block of exactly its size, so that AddressSanitizer reports every read past its end. */
static grd_tensor_file *open_copy(const char *header, int data, uint64_t length, char **ret_block)
{
    const size_t header_size = strlen(header);
    char *block = malloc(8 + header_size + (size_t)data);
    for (int i = 0; i < 8; i++)
        block[i] = (char)(length >> 8 * i);
    memcpy(block + 8, header, header_size);
    memset(block + 8 + header_size, 0, (size_t)data);
    *ret_block = block;
    return grd_tensor_file_over(block, 8 + header_size + (size_t)data);
}

static void malformed_headers_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < GRD_LENGTH(damages); i++) {
        char *block, text[300];
        grd_tensor_file *file = open_copy(damages[i].header, damages[i].data, strlen(damages[i].header), &block);
        if (damages[i].error == NULL) {
            if (file == NULL)
                fail_msg("%s: %s", damages[i].header, grd_error_message());
            for (int64_t t = 0; t < grd_tensor_file_count(file); t++)
                grd_tensor_file_read(file, grd_tensor_file_name(file, t));
            assert_true(grd_ok());
        } else {
            if (file != NULL)
                fail_msg("%s is accepted", damages[i].header);
            snprintf(text, sizeof text, "cannot load safetensors from memory: %s", damages[i].error);
            expect_error(GRD_ERROR_RUNTIME, text);
        }
        grd_tensor_file_close(file);
        free(block);
    }
}

static void invalid_header_lengths_are_refused(void **state)
{
    (void)state;
    char *block;
    assert_null(open_copy("{}", 0, 3, &block));
    expect_error(GRD_ERROR_RUNTIME, "cannot load safetensors from memory: its header of 3 bytes is longer than the file");
    free(block);
    assert_null(open_copy("{}", 0, UINT64_MAX, &block));
    expect_error(GRD_ERROR_RUNTIME,
                 "cannot load safetensors from memory: it is no safetensors file, or its header of 18446744073709551615 bytes is longer "
                 "than the format's limit, 100000000");
    free(block);
    assert_null(grd_tensor_file_over("1234567", 7));
    expect_error(GRD_ERROR_RUNTIME, "cannot load safetensors from memory: a safetensors file has at least 8 bytes, this one has 7");
    assert_null(grd_tensor_file_over("", 0));
    expect_error(GRD_ERROR_RUNTIME, "cannot load safetensors from memory: a safetensors file has at least 8 bytes, this one has 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(saved_files_equal_those_of_the_safetensors_package),
        IN_SCOPE(a_tensor_file_reads_single_tensors),
        IN_SCOPE(every_dtype_is_saved_and_loaded),
        IN_SCOPE(strided_tensors_are_saved_contiguously),
        IN_SCOPE(names_and_metadata_are_escaped),
        IN_SCOPE(an_empty_list_is_saved_and_loaded),
        IN_SCOPE(device_tensors_are_saved_and_loaded),
        IN_SCOPE(nonzero_bool_bytes_are_read_as_1),
        IN_SCOPE(load_into_fills_given_tensors),
        IN_SCOPE(a_failed_load_into_changes_no_tensor),
        IN_SCOPE(invalid_tensors_and_metadata_are_not_saved),
        IN_SCOPE(missing_and_irregular_files_are_refused),
        IN_SCOPE(a_file_truncated_after_opening_is_refused),
        IN_SCOPE(malformed_headers_are_refused),
        IN_SCOPE(invalid_header_lengths_are_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, remove_file);
}
