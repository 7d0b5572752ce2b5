#!/bin/sh
# The Debian packages with which nothing is skipped by the tests, and those of the other targets. Run as root. Building needs a C compiler, make
# and Python 3 with venv alone.
set -e
dpkg --add-architecture arm64 # for cmocka; the tests of arm64 run under QEMU
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    gcc g++ make git python3 python3-dev python3-venv libcmocka-dev pkg-config ccache valgrind clang clang-14 libclang-rt-14-dev chromium \
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross libcmocka-dev:arm64 qemu-user > /dev/null
