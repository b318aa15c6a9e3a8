#!/usr/bin/env python3
"""NVIDIA's program `fatbinary`, as far as clang calls it: PyPI has only the library behind it.

    fatbinary [options] --create OUT --image=profile=sm_80,file=A.cubin --image=profile=compute_90,file=B.s ...
"""

import argparse
import ctypes
import pathlib
import sys

LIBRARY = pathlib.Path(sys.argv[0]).parent.parent / "lib" / "libnvfatbin.so.12"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--create", required=True, type=pathlib.Path)
    parser.add_argument("--image", action="append", required=True)
    arguments, options = parser.parse_known_args()
    library = ctypes.CDLL(str(LIBRARY))

    def call(name, *parameters):
        code = getattr(library, name)(*parameters)
        if code != 0:
            library.nvFatbinGetErrorString.restype = ctypes.c_char_p
            sys.exit(f"fatbinary: {name}: {library.nvFatbinGetErrorString(code).decode()}")

    handle = ctypes.c_void_p()
    # By default only PTX is compressed, and machine code is the greater part.
    given = [b"-compress-all", *(f"-{option.lstrip('-')}".encode() for option in options)]
    call("nvFatbinCreate", ctypes.byref(handle), (ctypes.c_char_p * len(given))(*given), ctypes.c_size_t(len(given)))
    for image in arguments.image:
        fields = dict(field.split("=", 1) for field in image.split(","))
        kind, architecture = fields["profile"].split("_")
        code = pathlib.Path(fields["file"]).read_bytes()
        if kind == "sm":
            call("nvFatbinAddCubin", handle, code, ctypes.c_size_t(len(code)), architecture.encode(), b"")
        else:  # the library wants the terminating 0 counted
            call("nvFatbinAddPTX", handle, code + b"\0", ctypes.c_size_t(len(code) + 1), architecture.encode(), b"", b"")
    size = ctypes.c_size_t()
    call("nvFatbinSize", handle, ctypes.byref(size))
    binary = ctypes.create_string_buffer(size.value)
    call("nvFatbinGet", handle, binary)
    arguments.create.write_bytes(binary.raw)


if __name__ == "__main__":
    main()
