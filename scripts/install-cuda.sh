#!/bin/sh
# Installs the CUDA compilers (NVRTC, nvcc and their headers) without root, for machines with no CUDA toolkit:
# NVIDIA's own wheels from PyPI, versions pinned, about 500 MB in one folder that `lookback` looks at by itself.
# A GPU's driver is not part of it. Below cccl-3.5.0/ lie the headers of a second, newer CUB: the build with
# --features peers measures both.
#
#   scripts/install-cuda.sh [FOLDER]
#
# FOLDER defaults to $LOOKBACK_CUDA_HOME, or else ~/.local/share/lookback/cuda. With another folder than the
# default, set LOOKBACK_CUDA_HOME to it. Running it again installs nothing that is there.
set -eu

packages="nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88
nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85"
# CUB 3.5.0; its headers compile with nvcc 13.0, too.
newer_cub="nvidia-cuda-cccl==13.3.5.0.6"

fail() {
    echo "install-cuda: $*" >&2
    exit 1
}

if [ $# -gt 1 ] || [ "${1:-}" = "-h" ] || [ "${1:-}" = "--help" ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    [ $# -eq 1 ] && exit 0
    exit 2
fi

default="${XDG_DATA_HOME:-${HOME:-}/.local/share}/lookback/cuda"
folder="${1:-${LOOKBACK_CUDA_HOME:-$default}}"
case "$folder" in
    /*) ;;
    *) folder="$(pwd)/$folder" ;;
esac
prefix="$folder/nvidia/cu13"
newer_folder="$folder/cccl-3.5.0"
newer_header="$newer_folder/nvidia/cu13/include/cccl/cub/version.cuh"

# A Python without pip can often make a virtual environment that has one.
python=""
environment=""
trap 'if [ -n "$environment" ]; then rm -rf "$environment"; fi' EXIT
find_pip() {
    [ -z "$python" ] || return 0
    command -v python3 >/dev/null 2>&1 || fail "python3 is missing: install it (Debian: apt-get install python3 python3-pip)"
    python=python3
    if ! python3 -m pip --version >/dev/null 2>&1; then
        environment="$(mktemp -d)"
        python3 -m venv "$environment" >/dev/null 2>&1 \
            || fail "python3 has neither pip nor venv: install one (Debian: apt-get install python3-pip)"
        python="$environment/bin/python"
    fi
}

# is_installed FOLDER PACKAGES: whether these very packages are there.
is_installed() {
    [ -f "$1/installed-packages" ] && [ "$(cat "$1/installed-packages")" = "$2" ]
}

# install_wheels FOLDER PACKAGES FILE: FILE must be there afterwards.
install_wheels() {
    find_pip
    mkdir -p "$1" || fail "cannot write to $1; give another folder"
    # --no-deps: the list is complete. shellcheck: the list is meant to be split.
    # shellcheck disable=SC2086
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target "$1" $2 \
        || fail "pip could not install the wheels; is PyPI reachable?"
    [ -f "$3" ] || fail "the wheels brought no $3"
    printf '%s' "$2" >"$1/installed-packages"
}

if is_installed "$folder" "$packages" && [ -x "$prefix/bin/nvcc" ] && [ -f "$prefix/lib/libnvrtc.so.13" ]; then
    echo "install-cuda: already in $prefix"
else
    echo "install-cuda: installing into $folder (about 500 MB)"
    install_wheels "$folder" "$packages" "$prefix/lib/libnvrtc.so.13"
    # Some installers drop the permission that makes the compilers run.
    chmod -R u+x "$prefix/bin" "$prefix/nvvm/bin" 2>/dev/null || true
    echo "install-cuda: installed in $prefix"
fi
if is_installed "$newer_folder" "$newer_cub" && [ -f "$newer_header" ]; then
    echo "install-cuda: CUB 3.5.0 already in $newer_folder"
else
    install_wheels "$newer_folder" "$newer_cub" "$newer_header"
    echo "install-cuda: CUB 3.5.0 installed in $newer_folder"
fi
"$prefix/bin/nvcc" --version | tail -n 2
if [ "$folder" != "$default" ]; then
    echo "install-cuda: set LOOKBACK_CUDA_HOME=$folder"
fi
