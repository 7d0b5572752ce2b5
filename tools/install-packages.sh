#!/bin/sh
# The Debian packages that the tests need, beyond a C compiler, make and Python 3. Run as root.
set -e
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    gcc g++ make python3 python3-dev python3-venv libcmocka-dev pkg-config ccache valgrind clang-14 libclang-rt-14-dev > /dev/null
