#!/usr/bin/env bash
# Installs what --config=cuda needs to compile kernels: NVIDIA's CUDA 13 compiler and the headers and libraries of CUDA,
# cuBLASLt, cuDNN, NCCL and NVRTC. They come from the wheels on PyPI that cuda-wheels.txt pins, and are subject to
# NVIDIA's licences. A GPU is not needed. Does nothing if they are installed.
#
#   deploy/dev/cuda.sh          installs them in ~/.cache/tfjob/cuda (1.1 GB to download, 1.8 GB on disk)
#   deploy/dev/cuda.sh --path   prints the folder of the toolkit, which has bin, include and lib
case ${1:-} in
  "" | --path) ;;
  -h | --help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit ;;
  *) echo "unknown argument $1; try --help" >&2 && exit 2 ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

wheels=deploy/dev/cuda-wheels.txt
folder=$HOME/.cache/tfjob/cuda
toolkit=$folder/toolkit
if [ "${1:-}" = --path ]; then echo "$toolkit" && exit; fi

# Links the files of all wheels into one folder, with the layout of NVIDIA's installer.
assemble() {
  local site=$1/site/nvidia root=$1/toolkit part file name
  mkdir -p "$root"/{bin,include,lib}
  # Copies nvcc, because nvcc searches for its profile in the folder of its real path.
  cp "$site"/cu13/bin/nvcc "$site"/cu13/bin/nvcc.profile "$root/bin/"
  chmod +x "$root/bin/nvcc"
  for file in "$site"/cu13/bin/*; do
    name=$(basename "$file")
    [ -e "$root/bin/$name" ] || ln -s "../../site/nvidia/cu13/bin/$name" "$root/bin/$name"
    chmod +x "$file"
  done
  chmod +x "$site"/cu13/nvvm/bin/*
  ln -s ../site/nvidia/cu13/nvvm "$root/nvvm"
  for part in cu13 cudnn nccl; do
    for file in "$site/$part"/include/* "$site/$part"/lib/lib*; do
      name=${file#"$site/$part/"}
      [ -e "$root/$name" ] || ln -s "../../site/nvidia/$part/$name" "$root/$name"
    done
  done
  ln -s ../../site/include/cudnn_frontend "$root/include/cudnn_frontend"
  ln -s ../../site/include/cudnn_frontend.h "$root/include/cudnn_frontend.h"
}

install_wheels() {
  rm -rf "$folder.new"
  mkdir -p "$folder.new"
  /usr/bin/python3 -m venv "$folder.new/python"
  "$folder.new/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --target "$folder.new/site" -r "$wheels"
  rm -rf "$folder.new/python"
  assemble "$folder.new"
  cp "$wheels" "$folder.new/toolkit/wheels.txt"
  rm -rf "$folder"
  mv "$folder.new" "$folder"
}

install_packages build test
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
if ! cmp -s "$wheels" "$toolkit/wheels.txt"; then timed "CUDA from PyPI" install_wheels; fi
"$toolkit/bin/nvcc" --version | sed -n "s|.*release \(.*\), V.*|CUDA \1 in $toolkit|p"
