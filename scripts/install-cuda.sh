#!/bin/sh
# Installs the CUDA compilers (NVRTC, nvcc and their headers) without root, for machines with no CUDA toolkit:
# NVIDIA's own wheels from PyPI, versions pinned, about 500 MB in one folder that `lookback` looks at by itself.
# A GPU's driver is not part of it.
#
#   scripts/install-cuda.sh [FOLDER]
#
# FOLDER defaults to $LOOKBACK_CUDA_HOME, or else ~/.local/share/lookback/cuda. With another folder than the
# default, set LOOKBACK_CUDA_HOME to it. Running it again installs nothing that is there.
set -eu

packages="nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88
nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85"

fail() {
    echo "install-cuda: $*" >&2
    exit 1
}

if [ $# -gt 1 ] || [ "${1:-}" = "-h" ] || [ "${1:-}" = "--help" ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0"
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
stamp="$folder/installed-packages"

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$packages" ] && [ -x "$prefix/bin/nvcc" ] \
    && [ -f "$prefix/lib/libnvrtc.so.13" ]; then
    echo "install-cuda: already in $prefix"
else
    command -v python3 >/dev/null 2>&1 || fail "python3 is missing: install it (Debian: apt-get install python3 python3-pip)"
    # A Python without pip can often make a virtual environment that has one.
    python=python3
    environment=""
    trap 'if [ -n "$environment" ]; then rm -rf "$environment"; fi' EXIT
    if ! python3 -m pip --version >/dev/null 2>&1; then
        environment="$(mktemp -d)"
        python3 -m venv "$environment" >/dev/null 2>&1 \
            || fail "python3 has neither pip nor venv: install one (Debian: apt-get install python3-pip)"
        python="$environment/bin/python"
    fi
    mkdir -p "$folder" || fail "cannot write to $folder; give another folder"
    echo "install-cuda: installing into $folder (about 500 MB)"
    # --no-deps: the list is complete. shellcheck: the list is meant to be split.
    # shellcheck disable=SC2086
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target "$folder" $packages \
        || fail "pip could not install the wheels; is PyPI reachable?"
    [ -f "$prefix/lib/libnvrtc.so.13" ] || fail "the wheels brought no $prefix/lib/libnvrtc.so.13"
    # Some installers drop the permission that makes the compilers run.
    chmod -R u+x "$prefix/bin" "$prefix/nvvm/bin" 2>/dev/null || true
    printf '%s' "$packages" >"$stamp"
    echo "install-cuda: installed in $prefix"
fi
"$prefix/bin/nvcc" --version | tail -n 2
if [ "$folder" != "$default" ]; then
    echo "install-cuda: set LOOKBACK_CUDA_HOME=$folder"
fi
