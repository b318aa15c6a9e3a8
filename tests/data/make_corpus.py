#!/usr/bin/env python3
"""Writes the corpus of good and bad input files beside it, the same bytes on every run.

tests/data/corpus/KIND/good/*  must load; tests/data/corpus/KIND/bad/* must be refused, each with
its line in KIND/expected.tsv (name, status code, message), which is written and reviewed by hand. The
fuzzers start from the same files. Run it after adding a case, then add the case's message.
"""
import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def write(kind, outcome, name, data):
    path = CORPUS / kind / outcome / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, dict):
        data = json.dumps(data)
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


def writers(kind, ending=""):
    """Two functions of a name (without the ending) and its content: for good and for bad files."""
    return (lambda name, data: write(kind, "good", name + ending, data),
            lambda name, data: write(kind, "bad", name + ending, data))


# --- .npy -----------------------------------------------------------------------------------------

def npy_header(text, version=(1, 0), claimed=None, newline=True):
    body = text if isinstance(text, bytes) else text.encode("latin-1")
    width = 2 if version[0] == 1 else 4
    if newline:
        body += b" " * (-(8 + width + len(body) + 1) % 64) + b"\n"
    length = len(body) if claimed is None else claimed
    return b"\x93NUMPY" + bytes(version) + length.to_bytes(width, "little") + body


def npy(shape="(2, 2)", descr="'<f4'", fortran="False", data=None, **header):
    text = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, shape)
    if data is None:
        data = floats(1, 0, 0, 1)
    return npy_header(text, **header) + data


def fp16s(*values):
    return struct.pack("<%de" % len(values), *values)


def floats(*values):
    return struct.pack("<%df" % len(values), *values)


def doubles(*values):
    return struct.pack("<%dd" % len(values), *values)


def make_npy():
    good, bad = writers("npy")

    nan, inf = float("nan"), float("inf")
    good("f2.npy", npy(descr="'<f2'", data=fp16s(1, 0.5, -2, 3)))
    good("f4.npy", npy())
    good("f8.npy", npy(descr="'<f8'", data=doubles(1, 1e-200, 0, -5)))
    good("native.npy", npy(descr="'=f4'"))
    good("no_byte_order.npy", npy(descr="'|f4'"))
    good("version2.npy", npy(version=(2, 0)))
    good("version3.npy", npy(version=(3, 0)))
    good("python2_longs.npy", npy(shape="(2L, 2L)"))
    good("double_quotes_any_order.npy", npy_header(
        '{"shape":(2,2) ,"fortran_order" : False,\t"descr":"<f4"}') + floats(1, 0, 0, 1))
    good("one_row_one_column.npy", npy(shape="(1, 1)", data=floats(-3)))
    good("dims_33.npy", npy(shape="(1, 33)", data=floats(*range(1, 34))))
    good("half_subnormal.npy", npy(descr="'<f2'", data=fp16s(6e-8, 0, 0, 1)))
    good("length_at_lower_bound.npy", npy(data=floats(2.0**-60, 0, 0, 1)))
    good("length_at_upper_bound.npy", npy(data=floats(2.0**60, 0, 0, 1)))

    bad("empty.npy", b"")
    bad("git_lfs.npy", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    bad("magic_cut.npy", b"\x93NUM")
    bad("version_cut.npy", b"\x93NUMPY\x01")
    bad("length_cut.npy", b"\x93NUMPY\x01\x00\x10")
    bad("header_cut.npy", npy()[:40])
    bad("bad_magic.npy", b"\x92NUMPY" + npy()[6:])
    bad("zip.npy", b"PK\x03\x04" + bytes(40))
    bad("pickle.npy", b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01K\x02e.")
    bad("hdf5.npy", b"\x89HDF\r\n\x1a\n" + bytes(40))
    bad("text.npy", "[[1, 0], [0, 1]]")
    bad("version0.npy", npy(version=(0, 1)))
    bad("version4.npy", npy(version=(4, 0)))
    bad("version1_1.npy", npy(version=(1, 1)))
    bad("header_claims_64k.npy", npy(claimed=65535))
    bad("header_claims_4g.npy", npy(version=(2, 0), claimed=0xFFFFFFFF))
    bad("header_longer_than_file.npy", npy(claimed=9999))
    bad("header_empty.npy", b"\x93NUMPY\x01\x00\x00\x00")
    bad("header_without_newline.npy", npy(newline=False))
    bad("header_not_ascii.npy", npy(descr="'<f4\xe9'"))
    bad("header_nul.npy", npy(descr="'<f4\0'"))
    bad("header_no_dict.npy", npy_header("('<f4', False, (2, 2))"))
    bad("header_dict_open.npy", npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)"))
    bad("header_after_dict.npy", npy_header(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} #"))
    bad("header_string_open.npy", npy_header("{'descr: 3}"))
    bad("header_backslash.npy", npy(descr=r"'<\x66\x34'"))
    bad("header_no_comma.npy", npy_header(
        "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 2)}"))
    bad("header_no_colon.npy", npy_header("{'descr' '<f4'}"))
    bad("key_missing.npy", npy_header("{'descr': '<f4', 'shape': (2, 2)}"))
    bad("key_twice.npy", npy_header("{'descr': '<f4', 'descr': '<f8', 'shape': (2, 2)}"))
    bad("key_unknown.npy", npy_header(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'order': 'C'}"))
    bad("fortran_flag_number.npy", npy(fortran="0"))
    bad("fortran_flag_lower_case.npy", npy(fortran="false"))
    good("fortran_order.npy", npy(fortran="True"))
    bad("big_endian.npy", npy(descr="'>f4'"))
    bad("int64.npy", npy(descr="'<i8'", data=bytes(32)))
    bad("uint8.npy", npy(descr="'|u1'", data=bytes(4)))
    bad("complex.npy", npy(descr="'<c8'", data=bytes(32)))
    bad("long_double.npy", npy(descr="'<f16'", data=bytes(64)))
    bad("text_type.npy", npy(descr="'<U8'", data=bytes(128)))
    bad("bare_type.npy", npy(descr="'f4'"))
    bad("objects.npy", npy(descr="'|O'", data=b"\x80\x04]\x94."))
    bad("structured.npy", npy(descr="[('x', '<f4'), ('y', '<f4')]"))
    bad("structured_open.npy", npy_header("{'descr': [('x', '<f4')"))
    bad("descr_number.npy", npy(descr="4"))
    bad("shape_scalar.npy", npy(shape="()", data=floats(1)))
    bad("shape_1d.npy", npy(shape="(4,)"))
    bad("shape_3d.npy", npy(shape="(1, 2, 2)"))
    bad("shape_no_tuple.npy", npy(shape="(4)"))
    bad("shape_list.npy", npy(shape="[2, 2]"))
    bad("shape_negative.npy", npy(shape="(-2, 2)"))
    bad("shape_fraction.npy", npy(shape="(2.0, 2)"))
    bad("shape_leading_zero.npy", npy(shape="(02, 2)"))
    bad("shape_beyond_64_bits.npy", npy(shape="(99999999999999999999, 2)"))
    bad("shape_product_overflows.npy", npy(shape="(4294967295, 4294967295)"))
    bad("shape_2_62_rows.npy", npy(shape="(4611686018427387904, 4)"))
    bad("shape_4g_rows.npy", npy(shape="(4294967280, 4096)"))
    bad("shape_65_axes.npy", npy(shape="(" + "1, " * 65 + ")"))
    bad("rows_0.npy", npy(shape="(0, 2)", data=b""))
    bad("dims_0.npy", npy(shape="(2, 0)", data=b""))
    bad("dims_4097.npy", npy(shape="(1, 4097)"))
    bad("data_missing.npy", npy(data=b""))
    bad("data_cut.npy", npy(data=floats(1, 0, 0, 1)[:-1]))
    bad("data_trailing.npy", npy(data=floats(1, 0, 0, 1) + b"\n"))
    bad("data_trailing_row.npy", npy(data=floats(1, 0, 0, 1, 1, 1)))
    bad("nan.npy", npy(data=floats(1, 0, 0, nan)))
    bad("nan_f2.npy", npy(descr="'<f2'", data=fp16s(1, nan, 0, 1)))
    bad("nan_f8.npy", npy(descr="'<f8'", data=doubles(nan, 0, 0, nan)))
    bad("infinity.npy", npy(data=floats(inf, 0, 0, 1)))
    bad("minus_infinity.npy", npy(data=floats(1, 0, 0, -inf)))
    bad("nan_then_zero_row.npy", npy(shape="(4, 2)", data=floats(1, 1, 1, nan, 0, 0, nan, nan)))
    bad("zero_row.npy", npy(data=floats(1, 0, 0, 0)))
    bad("minus_zero_row.npy", npy(data=floats(-0.0, -0.0, 0, 1)))
    bad("two_zero_rows.npy", npy(data=floats(0, 0, 0, 0)))
    bad("subnormal_row.npy", npy(data=floats(1e-40, 1e-41, 0, 1)))
    bad("short_row.npy", npy(data=floats(1, 0, 2.0**-61, 0)))
    bad("long_row.npy", npy(data=floats(2.0**60, 2.0**60, 0, 1)))
    bad("long_row_f8.npy", npy(descr="'<f8'", data=doubles(1e300, 1e300, 0, 1)))
    bad("short_row_f8.npy", npy(descr="'<f8'", data=doubles(1, 0, 1e-300, 0)))


# --- .safetensors ---------------------------------------------------------------------------------

def safetensors(header, data=None, claimed=None):
    body = header if isinstance(header, bytes) else (
        header if isinstance(header, str) else json.dumps(header)).encode()
    if data is None:
        data = floats(1, 0, 0, 1)
    length = len(body) if claimed is None else claimed
    return struct.pack("<Q", length) + body + data


def tensor(dtype="F32", shape=(2, 2), offsets=(0, 16), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def make_safetensors():
    good, bad = writers("safetensors")

    good("f32.safetensors", safetensors({"embeddings": tensor()}))
    good("f16.safetensors", safetensors({"e": tensor("F16", (2, 2), (0, 8))}, fp16s(1, 0, 0, 1)))
    good("bf16.safetensors", safetensors(
        {"e": tensor("BF16", (2, 2), (0, 8))}, bytes.fromhex("803f0000000080bf")))
    good("f64.safetensors", safetensors({"e": tensor("F64", (2, 2), (0, 32))}, doubles(1, 0, 0, 1)))
    good("metadata.safetensors", safetensors(
        {"__metadata__": {"format": "pt"}, "embeddings": tensor()}))
    good("padded.safetensors", safetensors(json.dumps({"embeddings": tensor()}) + "       "))

    two = {"a": tensor(), "b": tensor("I64", (1,), (16, 24))}
    bad("empty.safetensors", b"")
    bad("length_cut.safetensors", b"\x10\x00\x00")
    bad("header_claims_2_63.safetensors", safetensors({"e": tensor()}, claimed=1 << 63))
    bad("header_claims_1_mib.safetensors", safetensors({"e": tensor()}, claimed=(1 << 20) + 1))
    bad("header_longer_than_file.safetensors", safetensors({"e": tensor()}, claimed=5000))
    bad("header_shorter.safetensors", safetensors({"e": tensor()}, claimed=20))
    bad("header_empty.safetensors", safetensors(b"", b""))
    bad("header_list.safetensors", safetensors("[1, 2]"))
    bad("header_number.safetensors", safetensors("7"))
    bad("header_not_utf8.safetensors", safetensors(b'{"\xff": 1}'))
    bad("header_deep.safetensors", safetensors('{"a":' * 17 + "1" + "}" * 17))
    bad("no_tensor.safetensors", safetensors({}, b""))
    bad("only_metadata.safetensors", safetensors({"__metadata__": {"a": "b"}}, b""))
    bad("two_tensors.safetensors", safetensors(two, floats(1, 0, 0, 1) + bytes(8)))
    bad("name_twice.safetensors", safetensors(
        '{"e": %s, "e": %s}' % (json.dumps(tensor()), json.dumps(tensor()))))
    bad("member_twice.safetensors", safetensors(
        '{"e": {"dtype": "F32", "dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}'))
    bad("entry_no_object.safetensors", safetensors({"e": [1]}))
    bad("dtype_missing.safetensors", safetensors({"e": {"shape": [2, 2], "data_offsets": [0, 16]}}))
    bad("dtype_number.safetensors", safetensors({"e": tensor(7)}))
    bad("dtype_unknown.safetensors", safetensors({"e": tensor("F31")}))
    bad("dtype_int.safetensors", safetensors({"e": tensor("I32")}))
    bad("shape_missing.safetensors", safetensors({"e": {"dtype": "F32", "data_offsets": [0, 16]}}))
    bad("shape_negative.safetensors", safetensors({"e": tensor(shape=(-2, -2))}))
    bad("shape_fraction.safetensors", safetensors({"e": tensor(shape=(2.5, 2))}))
    bad("shape_overflow.safetensors", safetensors({"e": tensor(shape=(1 << 40, 1 << 40))}))
    bad("shape_against_offsets.safetensors", safetensors({"e": tensor(shape=(2, 3))}))
    bad("shape_1d.safetensors", safetensors({"e": tensor(shape=(4,))}))
    bad("rows_0.safetensors", safetensors({"e": tensor(shape=(0, 2), offsets=(0, 0))}, b""))
    bad("offsets_missing.safetensors", safetensors({"e": {"dtype": "F32", "shape": [2, 2]}}))
    bad("offsets_three.safetensors", safetensors({"e": tensor(offsets=(0, 8, 16))}))
    bad("offsets_backwards.safetensors", safetensors({"e": tensor(offsets=(16, 0))}))
    bad("offsets_beyond_64_bits.safetensors", safetensors(
        {"e": tensor(offsets=(0, 99999999999999999999))}))
    bad("member_unknown.safetensors", safetensors({"e": tensor(order="C")}))
    bad("hole_before.safetensors", safetensors({"e": tensor(offsets=(4, 20))}, bytes(20)))
    bad("hole_between.safetensors", safetensors(
        {"a": tensor(), "b": tensor(offsets=(20, 36))}, bytes(36)))
    bad("overlap.safetensors", safetensors(
        {"a": tensor(), "b": tensor(offsets=(8, 24))}, bytes(24)))
    bad("data_cut.safetensors", safetensors({"e": tensor()}, bytes(15)))
    bad("data_trailing.safetensors", safetensors({"e": tensor()}, bytes(17)))
    bad("nan.safetensors", safetensors({"e": tensor()}, floats(1, float("nan"), 0, 1)))
    bad("zero_row.safetensors", safetensors({"e": tensor()}, floats(1, 1, 0, 0)))


# --- metadata.jsonl -------------------------------------------------------------------------------

def make_jsonl():
    good, bad = writers("jsonl", ".jsonl")

    good("plain", '{"id":"a","title":"A"}\n{"id":"b","title":"B"}\n')
    good("no_last_newline", '{"id":"a"}\n{"id":"b"}')
    good("crlf", '{"id":"a"}\r\n{"id":"b"}\r\n')
    good("spaces", ' {\t"id" : "a" , "n" : [ 1 , 2 ] } \n')
    good("integer_ids", '{"id":7}\n{"id":-3}\n{"id":"8"}\n')
    good("media_ids", '{"media_id":"a"}\n{"media_id":"b","id":"a"}\n')
    good("no_ids", '{"title":"A"}\n{"title":"A"}\n')
    good("all_types", json.dumps({"id": "x", "null": None, "yes": True, "no": False, "int": -5,
                                  "big": 2**63 - 1, "small": -2**63, "float": 1.5e-300,
                                  "text": "\u00e9\u4e2d\U0001f600", "list": [1, "a", [], {}],
                                  "object": {"a": {"b": [None]}}}) + "\n")
    good("raw_utf8", '{"id":"\u00e9\u4e2d\U0001f600","\u00fc":"\U0010ffff"}\n')
    good("surrogate_pair", '{"id":"\\ud83d\\ude00"}\n')
    good("escapes", r'{"id":"a\"\\\/b","t":"\b\f\n\r\t\u0000"}' + "\n")
    good("depth_16", '{"id":"a","d":' + "[" * 15 + "]" * 15 + "}\n")
    good("subnormal", '{"id":"a","x":5e-324}\n')
    good("empty", "")
    good("names_in_two_objects", '{"id":"a","x":{"id":1},"y":{"id":1}}\n')
    good("id_512_bytes", '{"id":"%s"}\n' % ("x" * 512))
    good("bom", b'\xef\xbb\xbf{"id":"a"}\n')
    good("bom_alone", b'\xef\xbb\xbf')
    good("blank_last", '{"id":"a"}\n\n')
    good("blank_last_crlf", '{"id":"a"}\r\n\r\n')
    good("blank_last_spaces", '{"id":"a"}\n  \t\n\n   ')
    good("blank_only", "\t\n\n")

    bad("bom_twice", b'\xef\xbb\xbf\xef\xbb\xbf{"id":"a"}\n')
    bad("bom_in_line_2", b'{"id":"a"}\n\xef\xbb\xbf{"id":"b"}\n')
    bad("utf16", '{"id":"a"}\n'.encode("utf-16"))
    good("blank_first", '\n{"id":"a"}\n')
    good("blank_between", '{"id":"a"}\n\n{"id":"b"}\n')
    good("blank_between_crlf", '{"id":"a"}\r\n\r\n \r\n{"id":"b"}\r\n')
    bad("many_faults", "".join(
        f'{{"id":"{i}","v":NaN}}\n' if i % 2 else f'{{"id":"{i}"}}\n' for i in range(24)))
    bad("faults_of_several_kinds", (
        '{"id":"a"}\n\n{"id":"b","t":"\\ud83d"}\n{"id":"a"}\n{\n  "id":"c"\n}\n{"t":1}\n'
        '\ufeff{"id":"d"}\n{"id":"e"}{"id":"f"}\n{"id":18446744073709551615}\n{"id":"a"}\n'))
    good("id_whole_number", '{"id":12.0}\n{"id":13.0}\n')
    good("item_id", '{"item_id":"a"}\n{"item_id":"b"}\n')
    bad("git_lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    bad("blank_between_cut", '{"id":"a"}\n\n{"id":')
    bad("top_list", '["a"]\n')
    bad("list_of_objects", '[{"id":"a"},\n{"id":"b"}]\n')
    bad("list_in_one_line", ' [ {"id":"%s"}]\n' % ("x" * 70_000))
    bad("list_indented", b'\xef\xbb\xbf[\r\n  {\r\n    "id": "a"\r\n  }\r\n]\r\n')
    bad("top_string", '"a"\n')
    bad("top_number", "1\n")
    bad("top_null", "null\n")
    bad("two_objects", '{"id":"a"}{"id":"b"}\n')
    bad("comma_after", '{"id":"a"},\n')
    bad("pretty_printed", '{\n  "id": "a"\n}\n')
    bad("cut_in_string", '{"id":"a')
    bad("cut_in_object", '{"id":"a"')
    bad("cut_after_colon", '{"id":')
    bad("trailing_comma_object", '{"id":"a",}\n')
    bad("trailing_comma_list", '{"id":"a","l":[1,]}\n')
    bad("no_colon", '{"id" "a"}\n')
    bad("no_comma", '{"id":"a" "b":1}\n')
    bad("bare_key", '{id:"a"}\n')
    bad("single_quotes", "{'id':'a'}\n")
    bad("comment", '{"id":"a"} // first\n')
    bad("wrong_close", '{"id":"a"]\n')
    bad("nan", '{"id":"a","x":NaN}\n')
    bad("infinity", '{"id":"a","x":-Infinity}\n')
    bad("python_none", '{"id":"a","x":None}\n')
    bad("leading_zero", '{"id":"a","x":007}\n')
    bad("leading_plus", '{"id":"a","x":+7}\n')
    bad("bare_point", '{"id":"a","x":1.}\n')
    bad("bare_exponent", '{"id":"a","x":1e}\n')
    bad("bare_minus", '{"id":"a","x":-}\n')
    bad("hexadecimal", '{"id":"a","x":0x10}\n')
    bad("number_1e999", '{"id":"a","x":1e999}\n')
    bad("number_minus_1e999", '{"id":"a","x":-1e999}\n')
    bad("integer_beyond_64_bits", '{"id":"a","x":9223372036854775808}\n')
    bad("integer_300_digits", '{"id":"a","x":%s}\n' % ("9" * 300))
    bad("depth_17", '{"id":"a","d":' + "[" * 16 + "]" * 16 + "}\n")
    bad("depth_1000", '{"id":"a","d":' + "[" * 1000 + "\n")
    bad("key_twice", '{"id":"a","x":1,"x":2}\n')
    bad("key_twice_escaped", '{"id":"a","x":1,"\\u0078":2}\n')
    bad("key_twice_nested", '{"id":"a","o":{"l":[{"x":1,"x":1}]}}\n')
    bad("key_twice_of_40", "{" + ",".join('"k%d":%d' % (i % 39, i) for i in range(40)) + "}\n")
    bad("bare_tab", '{"id":"a\tb"}\n')
    bad("bare_nul", '{"id":"a\0b"}\n')
    bad("nul_outside", '{"id":"a"}\0\n')
    bad("escape_unknown", '{"id":"\\q"}\n')
    bad("escape_cut", '{"id":"\\u12"}\n')
    bad("surrogate_high_alone", '{"id":"\\ud83d"}\n')
    bad("surrogate_high_then_text", '{"id":"\\ud83dx"}\n')
    bad("surrogate_high_twice", '{"id":"\\ud83d\\ud83d"}\n')
    bad("surrogate_low_alone", '{"id":"\\ude00"}\n')
    bad("utf8_overlong_slash", b'{"id":"\xc0\xaf"}\n')
    bad("utf8_overlong_3", b'{"id":"\xe0\x80\xaf"}\n')
    bad("utf8_surrogate", b'{"id":"\xed\xa0\x80"}\n')
    bad("utf8_beyond", b'{"id":"\xf4\x90\x80\x80"}\n')
    bad("utf8_cut", b'{"id":"\xe2\x82"}\n')
    bad("utf8_lone_continuation", b'{"id":"ab\x80"}\n')
    bad("latin1", b'{"id":"Am\xe9lie"}\n')
    bad("utf8_bad_key", b'{"id":"a","\xff":1}\n')
    bad("id_twice", '{"id":"a"}\n{"id":"b"}\n{"id":"a"}\n')
    bad("id_twice_number_and_text", '{"id":7}\n{"id":"7"}\n')
    bad("id_missing_later", '{"id":"a"}\n{"media_id":"b"}\n')
    good("id_null", '{"id":null}\n')
    bad("id_fraction", '{"id":1.5}\n')
    bad("id_boolean", '{"id":true}\n')
    bad("id_list", '{"id":["a"]}\n')
    bad("id_empty", '{"id":""}\n')
    bad("id_513_bytes", '{"id":"%s"}\n' % ("x" * 513))
    bad("id_newline", '{"id":"a\\nb"}\n')
    bad("id_nul", '{"id":"a\\u0000b"}\n')
    bad("id_c1_control", '{"id":"a\\u0085b"}\n')


# --- user_ids.json --------------------------------------------------------------------------------

def make_ids():
    good, bad = writers("ids", ".json")

    good("list", '["a","b","c"]')
    good("object", '{"user_ids":["a","b"]}\n')
    good("object_with_plain_values", '{"count":2,"ids":["a","b"],"made":"2024","ok":true,"x":null}')
    good("integers", "[1, 2, -3]\n")
    good("pretty_crlf", '{\r\n  "user_ids": [\r\n    "a",\r\n    "b"\r\n  ]\r\n}\r\n')
    good("empty_list", "[]")

    bad("empty", "")
    bad("spaces", " \n ")
    good("bom", b'\xef\xbb\xbf["a"]')
    bad("bom_twice", b'\xef\xbb\xbf\xef\xbb\xbf["a"]')
    bad("string", '"a"')
    bad("number", "3")
    bad("lines", "a\nb\nc\n")
    bad("two_lists", '{"user_ids":["a"],"more":["b"]}')
    bad("no_list", '{"user_ids":"a"}')
    bad("empty_object", "{}")
    bad("object_inside", '{"users":{"ids":["a"]}}')
    bad("object_after_list", '{"ids":["a"],"users":{}}')
    bad("key_twice", '{"n":1,"n":2,"ids":["a"]}')
    bad("65_members", "{" + ",".join('"k%d":1' % i for i in range(65)) + "}")
    bad("nested_list", '["a",["b"]]')
    bad("object_entry", '["a",{"id":"b"}]')
    bad("null_entry", '["a",null]')
    bad("boolean_entry", '["a",true]')
    bad("fraction_entry", "[1,2.5]")
    bad("empty_id", '["a",""]')
    bad("long_id", '["%s"]' % ("y" * 513))
    bad("control_id", '["a\\tb"]')
    bad("id_twice", '["a","b",\n"c","b"]')
    bad("id_twice_number", '[7,"7"]')
    bad("cut", '["a","b"')
    bad("cut_in_object", '{"user_ids":["a","b"]')
    bad("trailing_comma", '["a",]')
    bad("two_values", '["a"] ["b"]')
    bad("invalid_utf8", b'["\xff"]')
    bad("huge_integer", "[123456789012345678901234567890]")


# --- interactions.jsonl ---------------------------------------------------------------------------

def make_interactions():
    good, bad = writers("interactions", ".jsonl")

    good("plain", '{"user_id":"u1","media_id":"a","weight":4.5,"time":"2022-01-01T02:02:19Z"}\n'
                  '{"user_id":"u2","media_id":"b"}\n')
    good("item_id", '{"user_id":"u1","item_id":"a","weight":-1}\n')
    good("id", '{"user_id":"u1","id":"a","time":1700000000}\n')
    good("offset_time", '{"user_id":"u1","media_id":"a","time":"2022-01-01T02:02:19.125+05:30"}\n')
    good("unknown_names", '{"user_id":"nobody","media_id":"a"}\n{"user_id":"u1","media_id":"z"}\n')
    good("repeated", '{"user_id":"u1","media_id":"a"}\n{"user_id":"u1","media_id":"a"}\n')
    good("other_fields", '{"user_id":"u1","media_id":"a","device":{"os":"x"},"tags":[1]}\n')
    good("empty", "")

    good("no_user", '{"media_id":"a"}\n')
    bad("no_item", '{"user_id":"u1"}\n')
    bad("no_item_second_line", '{"user_id":"u1","media_id":"a"}\n{"user_id":"u1","movie":"a"}\n')
    good("user_null", '{"user_id":null,"media_id":"a"}\n')
    good("user_empty", '{"user_id":"","media_id":"a"}\n')
    bad("user_control", '{"user_id":"u\\u0001","media_id":"a"}\n')
    bad("item_fraction", '{"user_id":"u1","media_id":1.5}\n')
    bad("item_list", '{"user_id":"u1","item_id":["a"]}\n')
    bad("item_long", '{"user_id":"u1","id":"%s"}\n' % ("x" * 600))
    good("weight_text", '{"user_id":"u1","media_id":"a","weight":"4"}\n')
    good("weight_null", '{"user_id":"u1","media_id":"a","weight":null}\n')
    bad("weight_nan", '{"user_id":"u1","media_id":"a","weight":NaN}\n')
    bad("weight_1e999", '{"user_id":"u1","media_id":"a","weight":1e999}\n')
    good("time_words", '{"user_id":"u1","media_id":"a","time":"yesterday"}\n')
    good("time_no_zone", '{"user_id":"u1","media_id":"a","time":"2022-01-01T02:02:19"}\n')
    good("time_month_13", '{"user_id":"u1","media_id":"a","time":"2022-13-01T02:02:19Z"}\n')
    good("time_infinite", '{"user_id":"u1","media_id":"a","time":"infinite-future"}\n')
    good("time_trailing_space", '{"user_id":"u1","media_id":"a","time":"2022-01-01T02:02:19Z "}\n')
    good("time_fraction", '{"user_id":"u1","media_id":"a","time":1.5}\n')
    bad("csv", "u1,a,4.5\n")
    bad("list", '["u1","a"]\n')
    good("blank_last", b'\xef\xbb\xbf{"user_id":"u1","media_id":"a"}\n\n')
    good("ids_whole_numbers", '{"user_id":12.0,"media_id":7.0,"weight":"many","time":null}\n')
    bad("many_faults", '{"user_id":"u1"}\n{"user_id":"u1","media_id":"a"}\n{"user_id":[],"media_id":"a"}\n')
    good("blank", '{"user_id":"u1","media_id":"a"}\n\n{"user_id":"u2","media_id":"a"}\n')
    bad("key_twice", '{"user_id":"u1","user_id":"u2","media_id":"a"}\n')
    bad("cut", '{"user_id":"u1","media_id":"a"}\n{"user_id":"u')


# --- collection.json ------------------------------------------------------------------------------

def make_collection_json():
    good, bad = writers("collection_json", ".json")

    good("empty", {})
    good("all_keys", {"vectors": "v.npy", "payload": "media/p.jsonl", "user_ids": "u.json",
                      "user_vectors": "users/u.safetensors", "interactions": "i.jsonl",
                      "metric": "dot", "id_field": "key", "tensor": "emb",
                      "lookup_fields": ["title", "name"]})
    good("cosine", '{\n  "metric": "cosine"\n}\n')

    bad("nothing", "")
    bad("list", "[]")
    bad("syntax", '{\n  "metric": "dot",\n}\n')
    bad("key_near", {"metrics": "dot"})
    bad("key_case", {"ID_field": "x"})
    bad("key_far", {"colour": "red"})
    bad("key_twice", '{"metric":"dot","metric":"dot"}')
    bad("metric_unknown", {"metric": "euclidean"})
    bad("metric_case", {"metric": "Cosine"})
    bad("metric_number", {"metric": 1})
    bad("vectors_number", {"vectors": 5})
    bad("vectors_null", {"vectors": None})
    bad("vectors_empty", {"vectors": ""})
    bad("vectors_absolute", {"vectors": "/etc/passwd"})
    bad("vectors_up", {"vectors": "../other/vectors.npy"})
    bad("vectors_up_inside", {"vectors": "media/../../vectors.npy"})
    bad("vectors_nul", {"vectors": "a\0.npy"})
    bad("payload_folder", {"payload": "media/"})
    bad("lookup_fields_text", {"lookup_fields": "title"})
    bad("lookup_fields_empty", {"lookup_fields": []})
    bad("lookup_fields_number", {"lookup_fields": ["title", 2]})
    bad("id_field_list", {"id_field": ["id"]})
    good("bom", b'\xef\xbb\xbf{}')
    good("on_zero_row", {"on_zero_row": "skip", "metric": "dot"})
    bad("on_zero_row_unknown", {"on_zero_row": "ignore"})
    bad("on_zero_row_boolean", {"on_zero_row": True})
    bad("on_zero_row_key", {"on_zero_rows": "skip"})
    good("separators", {"separators": {"genres": "|", "cast": ", "},
                        "field_types": {"genres": "list of keywords"}})
    bad("separators_text", {"separators": "|"})
    bad("separators_list", {"separators": {"genres": ["|"]}})
    bad("separators_empty", {"separators": {"genres": ""}})
    bad("separators_space", {"separators": {"genres": " "}})
    bad("separators_long", {"separators": {"genres": "123456789"}})
    bad("separators_of_keyword", {"separators": {"genres": "|"},
                                  "field_types": {"genres": "keyword"}})
    bad("invalid_utf8", b'{"id_field":"\xff"}')
    bad("deep", "[" * 40)


# --- whole folders --------------------------------------------------------------------------------

def make_folders():
    def folder(outcome, name, **files):
        for key, data in files.items():
            write("folders", outcome, name + "/" + FILE_NAMES.get(key, key), data)

    items = '{"id":"a","title":"A"}\n{"id":"b","title":"B"}\n'
    users = '["u1","u2","u3"]'
    user_vectors = npy(shape="(3, 2)", descr="'<f8'", data=doubles(1, 2, 3, 4, 5, 6))
    seen = '{"user_id":"u1","media_id":"a"}\n'
    settings = json.dumps

    folder("good", "vectors_only", vectors=npy())
    folder("good", "everything", vectors=npy(), payload=items, ids=users, users=user_vectors,
           seen=seen)
    folder("good", "subfolders", media_vectors=npy(), media_payload=items, users_ids=users,
           users_vectors=user_vectors, users_seen=seen)
    folder("good", "named", collection=settings({"vectors": "v.npy", "payload": "p.jsonl",
                                                 "metric": "dot", "id_field": "title",
                                                 "lookup_fields": ["id"]}),
           v=npy(), p=items)
    folder("good", "tensor", collection=settings({"tensor": "b"}), tensors=safetensors(
        {"a": tensor(), "b": tensor(offsets=(16, 32))}, floats(1, 0, 0, 1, 0, 1, 1, 0)))
    folder("good", "two_candidates_named", vectors=npy(), vectors2=npy(),
           collection=settings({"vectors": "vectors.npy"}))
    folder("good", "unknown_interactions", vectors=npy(), payload=items, ids=users,
           users=user_vectors, seen=seen + '{"user_id":"u9","media_id":"a"}\n')
    folder("good", "interactions_without_users", vectors=npy(), payload=items, seen=seen)

    zero_row = npy(data=floats(0, 0, 0, 1))
    folder("good", "zero_row_dot", vectors=zero_row, payload=items,
           collection=settings({"metric": "dot"}), ids=users,
           users=npy(shape="(3, 2)", data=floats(1, 1, 1, 1, 0, 0)))
    folder("good", "zero_row_skipped", vectors=zero_row, payload=items,
           collection=settings({"on_zero_row": "skip"}))
    folder("good", "field_types", vectors=npy(),
           payload='{"id":"a","t":"2024-05-31","n":1}\n{"id":"b","t":null,"n":0.5}\n',
           collection=settings({"field_types": {"t": "time", "n": "number"}}))
    folder("good", "field_types_misfit", vectors=npy(),
           payload='{"id":"a","year":1995}\n{"id":"b","year":"soon"}\n',
           collection=settings({"field_types": {"year": "integer"}}))
    folder("good", "separators", vectors=npy(),
           payload='{"id":"a","genres":"Drama|War"}\n{"id":"b","genres":["War"]}\n',
           collection=settings({"separators": {"genres": "|"}}))
    folder("good", "unread", vectors=npy(), payload=items, csv="id,title\na,A\nb,B\n")

    folder("bad", "zero_rows_only_dot", vectors=npy(data=floats(0, 0, 0, 0)),
           collection=settings({"metric": "dot"}))
    folder("bad", "zero_rows_only_skipped", vectors=npy(data=floats(0, 0, -0.0, 0)),
           collection=settings({"on_zero_row": "skip"}))
    folder("bad", "rounded_to_zero_dot",
           vectors=npy(descr="'<f8'", data=doubles(1e-60, 0, 0, 1)),
           collection=settings({"metric": "dot"}))
    folder("bad", "user_vectors_zero_row_skip", vectors=zero_row, ids=users,
           users=npy(shape="(3, 2)", data=floats(1, 1, 1, 1, 0, 0)),
           collection=settings({"on_zero_row": "skip"}))
    folder("bad", "field_type_misfit", vectors=npy(),
           payload='{"id":"a","year":"late"}\n{"id":"b","year":"soon"}\n',
           collection=settings({"field_types": {"year": "integer"}}))
    folder("bad", "field_type_unknown_field", vectors=npy(), payload=items,
           collection=settings({"field_types": {"titel": "keyword"}}))
    folder("bad", "separator_unknown_field", vectors=npy(), payload=items,
           collection=settings({"separators": {"titel": "|"}}))
    folder("bad", "separator_without_payload", vectors=npy(),
           collection=settings({"separators": {"genres": "|"}}))
    folder("bad", "separator_of_numbers", vectors=npy(),
           payload='{"id":"a","year":1995}\n{"id":"b","year":1996}\n',
           collection=settings({"separators": {"year": "|"}}))
    folder("bad", "embeddings_alone", embeddings=npy())
    folder("bad", "embeddings_two", embeddings=npy(), v=npy(), payload=items)
    folder("bad", "embeddings_other_format", torch=b"PK")
    folder("bad", "folder_above", inner=npy())
    folder("bad", "no_vectors", payload=items)
    folder("bad", "two_candidates", vectors=npy(), vectors2=npy())
    folder("bad", "two_candidates_subfolder", vectors=npy(), media_vectors=npy())
    folder("bad", "payload_one_short", vectors=npy(), payload='{"id":"a"}\n')
    folder("bad", "payload_one_more", vectors=npy(), payload=items + '{"id":"c"}\n')
    folder("bad", "payload_empty", vectors=npy(), payload="")
    folder("bad", "payload_bad_line", vectors=npy(), payload='{"id":"a"}\n{"id":\n')
    folder("bad", "vectors_bad", vectors=npy(data=floats(0, 0, 0, 1)), payload=items)
    folder("bad", "vectors_cut", vectors=npy()[:-4], payload=items)
    folder("bad", "ids_without_user_vectors", vectors=npy(), ids=users)
    folder("bad", "user_vectors_without_ids", vectors=npy(), users=user_vectors)
    folder("bad", "ids_one_short", vectors=npy(), ids='["u1","u2"]', users=user_vectors)
    folder("bad", "ids_one_more", vectors=npy(), ids='[1,2,3,4]', users=user_vectors)
    folder("bad", "user_dimensions", vectors=npy(), ids=users,
           users=npy(shape="(3, 3)", data=floats(*range(1, 10))))
    folder("bad", "user_vectors_zero_row", vectors=npy(), ids=users,
           users=npy(shape="(3, 2)", data=floats(1, 1, 1, 1, 0, 0)))
    folder("bad", "interactions_bad_line", vectors=npy(), payload=items, ids=users,
           users=user_vectors, seen=seen + "{}\n")
    folder("bad", "settings_unknown_key", vectors=npy(), collection='{"vector":"content_vectors.npy"}')
    folder("bad", "settings_missing_file", vectors=npy(), collection='{"payload":"meta.jsonl"}')
    folder("bad", "settings_id_field", vectors=npy(), payload=items,
           collection='{"id_field":"imdb"}')
    folder("bad", "settings_lookup_field", vectors=npy(), payload=items,
           collection='{"lookup_fields":["titel"]}')
    folder("bad", "settings_tensor", tensors=safetensors({"embeddings": tensor()}),
           collection='{"tensor":"embedings"}')
    folder("bad", "settings_id_field_without_payload", vectors=npy(),
           collection='{"id_field":"imdb"}')
    folder("bad", "settings_tensor_of_npy", vectors=npy(), collection='{"tensor":"embeddings"}')
    folder("bad", "settings_vectors_ending", collection='{"vectors":"v.bin"}', bin=npy())
    folder("bad", "settings_vectors_folder", collection='{"vectors":"sub.npy"}', sub=b"")


FILE_NAMES = {
    "vectors": "content_vectors.npy", "vectors2": "vectors.npy", "payload": "metadata.jsonl",
    "ids": "user_ids.json", "users": "preference_vectors.npy", "seen": "interactions.jsonl",
    "media_vectors": "media/content_vectors.npy", "media_payload": "media/metadata.jsonl",
    "users_ids": "users/user_ids.json", "users_vectors": "users/preference_vectors.npy",
    "users_seen": "users/interactions.jsonl", "collection": "collection.json", "v": "v.npy",
    "embeddings": "embeddings.npy", "torch": "vectors.pt", "inner": "films/content_vectors.npy",
    "csv": "metadata.csv", "p": "p.jsonl", "tensors": "vectors.safetensors", "bin": "v.bin", "sub": "sub.npy/inner",
}


if __name__ == "__main__":
    make_npy()
    make_safetensors()
    make_jsonl()
    make_ids()
    make_interactions()
    make_collection_json()
    make_folders()
    for kind in sorted(path for path in CORPUS.iterdir() if (path / "bad").is_dir()):
        counts = {outcome: len(list((kind / outcome).iterdir())) for outcome in ("good", "bad")}
        print("%-16s %3d good  %3d bad" % (kind.name, counts["good"], counts["bad"]))
