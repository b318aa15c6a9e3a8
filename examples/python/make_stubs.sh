#!/bin/sh
# Makes the Python modules simile/v1/*_pb2.py and *_pb2_grpc.py in FOLDER, which goes on PYTHONPATH.
# Needs Debian's protobuf-compiler and protobuf-compiler-grpc.
set -eu
if [ $# -ne 1 ]; then
  echo "usage: $0 FOLDER" >&2
  exit 64
fi
protos="$(cd "$(dirname "$0")/../../proto" && pwd)"
mkdir -p "$1"
protoc -I "$protos" --python_out="$1" --grpc_python_out="$1" \
  --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" "$protos"/simile/v1/*.proto
