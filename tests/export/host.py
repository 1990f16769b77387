"""Calls an exported kernel in a process that has apache-tvm-ffi and nothing else.

    python host.py < request.json

The request: `library`; `fake` (a libcuda to load first) with `devices`, `version`; and `calls`,
each with `function`, `args`, and what the driver is told before (`fail`, `current`, `formats`,
`stream`). A tensor is `{"shape", "dtype", "device", "address", "strides"}`; with "array" it has
memory.
"""

import ctypes
import json
import sys

# Neither is there on a host that only runs kernels.
for name in ("torch", "tvm", "tilelang", "numpy"):
    sys.modules[name] = None

import tvm_ffi  # noqa: E402

CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6, "float8_e4m3fn": 10,
         "float4_e2m1fn": 17}  # fmt: skip


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Versioned))
Versioned._fields_ = [
    ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
    ("deleter", Deleter), ("flags", ctypes.c_uint64), ("tensor", DLTensor),
]  # fmt: skip
ALLOCATIONS = []


@Deleter
def free(made):
    ALLOCATIONS.append(f"free {made.contents.tensor.data}")


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(ctypes.c_void_p),
                  ctypes.c_void_p, ctypes.c_void_p)  # fmt: skip
def allocate(wanted, out, context, set_error):
    """What a framework gives tvm-ffi to allocate with; addresses of memory that is not there."""
    t = wanted.contents
    shape = (ctypes.c_int64 * 1).from_address(t.shape)
    held = ((ctypes.c_int64 * 1)(shape[0]), (ctypes.c_int64 * 1)(1))
    address = 0x500000 + 0x1000 * len(ALLOCATIONS)
    made = Versioned(1, 0, None, free, 0, DLTensor(
        address, t.device_type, t.device_id, 1, t.code, t.bits, t.lanes,
        ctypes.addressof(held[0]), ctypes.addressof(held[1]), 0))  # fmt: skip
    KEPT.extend((made, held))
    ALLOCATIONS.append(f"allocate {shape[0]} on {t.device_type}:{t.device_id} at {address}")
    out[0] = ctypes.addressof(made)
    return 0


ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
KEPT = []


class Exchanged:
    """A tensor of another framework, on whatever device."""

    def __init__(self, row):
        shape = row["shape"]
        strides, step = [], 1
        for extent in reversed(shape):
            strides.insert(0, step)
            step *= max(1, extent)
        strides = row.get("strides") or strides
        code, bits, lanes = row["dtype"]
        kind, index = row.get("device", (2, 0))
        self.device = (kind, index)
        address = row.get("address", 0x10000)
        if "array" in row:
            memory = (ctypes.c_char * (len(row["array"]) // 2 + 64)).from_buffer_copy(
                bytes.fromhex(row["array"]) + bytes(64)
            )
            address = ctypes.addressof(memory)
            self.memory = memory
        held = ((ctypes.c_int64 * max(1, len(shape)))(*shape),
                (ctypes.c_int64 * max(1, len(shape)))(*strides))  # fmt: skip
        self.managed = Managed(
            DLTensor(address, kind, index, len(shape), CODES.get(code, code), bits, lanes,
                     ctypes.addressof(held[0]), ctypes.addressof(held[1]), row.get("offset", 0)),
            None, None,
        )  # fmt: skip
        KEPT.extend((self, held))

    def __dlpack__(self, **more):
        return ctypes.pythonapi.PyCapsule_New(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self):
        return self.device


def argument(row):
    if isinstance(row, dict):
        made = Exchanged(row)
        return tvm_ffi.from_dlpack(made), made
    return row, None


def main():
    request = json.load(sys.stdin)
    fake = None
    if request.get("fake"):
        fake = ctypes.CDLL(request["fake"], ctypes.RTLD_GLOBAL)
        fake.fake_log.restype = ctypes.c_char_p
        for device in request.get("devices", ()):
            fake.fake_device(*device)
        fake.fake_version(request.get("version", 13000))
    if request.get("allocator"):
        ffi = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())
        ffi.TVMFFIEnvSetDLPackManagedTensorAllocator(allocate, 1, None)
    module = tvm_ffi.load_module(request["library"])
    answers = []
    for call in request["calls"]:
        if fake is not None:
            fake.fake_clear()
            fake.fake_formats(call.get("formats", "").encode())
            fake.fake_current(call.get("current", -1))
            for name, result in call.get("fail", {}).items():
                fake.fake_fail(name.encode(), result)
        if "stream" in call:
            ffi = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())
            ffi.TVMFFIEnvSetStream(
                2, call.get("stream_device", 0), ctypes.c_void_p(call["stream"]), None
            )
        made = [argument(row) for row in call["args"]]
        answer = {}
        try:
            module[call["function"]](*(value for value, _ in made))
        except Exception as error:
            answer["error"] = [type(error).__name__, str(error)]
        if fake is not None:
            answer["log"] = fake.fake_log().decode().splitlines()
            answer["depth"] = fake.fake_depth()
        answer["allocations"], ALLOCATIONS[:] = list(ALLOCATIONS), []
        answer["arrays"] = [
            None if exchanged is None or not hasattr(exchanged, "memory")
            else bytes(exchanged.memory)[:-64].hex()
            for _, exchanged in made
        ]  # fmt: skip
        answers.append(answer)
    doc = getattr(module, "get_function_doc", None)
    docs = {n: doc(n) for n in request.get("docs", ())} if doc else {}
    json.dump({"answers": answers, "docs": docs, "modules": sorted(sys.modules)}, sys.stdout)


main()
