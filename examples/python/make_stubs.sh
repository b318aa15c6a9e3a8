#!/bin/sh
# Makes the Python modules simile/v1/*_pb2.py and *_pb2_grpc.py in FOLDER, which goes on PYTHONPATH,
# and those of the error details, google/rpc/*_pb2.py, unless the package googleapis-common-protos
# has them. Needs Debian's protobuf-compiler and protobuf-compiler-grpc.
#   PYTHON   the interpreter that will use them (default: /usr/bin/python3)
set -eu
if [ $# -ne 1 ]; then
  echo "usage: $0 FOLDER" >&2
  exit 64
fi
protos="$(cd "$(dirname "$0")/../../proto" && pwd)"
mkdir -p "$1"
protoc -I "$protos" --python_out="$1" --grpc_python_out="$1" \
  --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" "$protos"/simile/v1/*.proto
# Two copies of one .proto file in a program are an error of protobuf's.
if ! "${PYTHON:-/usr/bin/python3}" -c "from google.rpc import error_details_pb2, status_pb2" 2>/dev/null; then
  protoc -I "$protos" --python_out="$1" "$protos"/google/rpc/*.proto
fi
