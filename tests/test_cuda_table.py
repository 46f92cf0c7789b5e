"""
The table of hooked CUDA runtime functions, without running any: what libtare.so exports, and that
prototypes, layouts and names are NVIDIA's. Headers and runtimes come from the CUDA packages that
the tests' Python has, from a CUDA toolkit, and from the folders in CUDA_PACKAGES (separated by
colons).
"""

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from conftest import LIBTARE, ROOT

SONAMES = {11: "libcudart.so.11.0", 12: "libcudart.so.12", 13: "libcudart.so.13"}

# Of later releases than the oldest of that major which a test may meet.
NEWER = {
    12: {"cudaMemcpyBatchAsync", "cudaMemcpy3DBatchAsync", "cudaStreamBeginCaptureToGraph"},
    13: {
        "cudaLaunchHostFunc_v2",
        "cudaMemcpyWithAttributesAsync",
        "cudaMemcpy3DWithAttributesAsync",
        "cudaExecutionCtxSynchronize",
    },
}


def preprocess(text, major):
    command = ["gcc", "-E", "-P", "-x", "c", "-I", ROOT, f"-DCUDART_MAJOR={major}", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def table(major):
    """[(name, forms, parameters, arguments)] as texts."""
    rows = preprocess(
        """
        #define HOOK(name, forms, category, event, params, args, ...) @ name forms params args
        #define HOOK_DEVICE(name, params, args, ...) @ name PLAIN params args
        #include "preload/cuda_hooks.def"
        """,
        major,
    )
    rows = [" ".join(row.split()) for row in rows.split("@")[1:]]
    return [re.fullmatch(r"(\w+) (\w+) \((.*)\) \((.*)\)", row).groups() for row in rows]


def names(major):
    suffix = {"PLAIN": None, "PTSZ": "_ptsz", "PTDS": "_ptds"}
    for name, forms, _, _ in table(major):
        yield name
        if suffix[forms]:
            yield name + suffix[forms]


def dynamic_symbols(path):
    """{(name, version)} of what a library defines for others."""
    done = subprocess.run(
        ["readelf", "--dyn-syms", "-W", path], capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and fields[6] not in ("UND", "ABS"):
            name, _, version = fields[7].partition("@")
            yield name, version


# Names of our own and of zstd; what is exported has a name of libc's, CPython's or torch's.
OURS = re.compile(
    r"(tare|trace|hook|cudart\d|machine|knob|process|note|pyhooks|torchhooks|ZSTD|HUF|FSE|XXH)"
)


# What makes another client of CUPTI known to us, see cupti/gpu_handover.c.
CUPTI_WRAPPERS = [
    name + form
    for name in ("cuptiSubscribe", "cuptiActivityRegisterCallbacks")
    for form in ("", "_v2")
]
CUPTI_SONAMES = [f"libcupti.so.{version}" for version in ("11.6", "11.7", "11.8", "12", "13")]


def test_exports_are_the_table():
    exported = set(dynamic_symbols(LIBTARE))
    expected = {(name, SONAMES[major]) for major in SONAMES for name in names(major)}
    assert expected - exported == set()
    # One @: none is a default version, so dlsym(RTLD_DEFAULT) finds the real function, not ours.
    others = exported - expected
    runtimes = {version for _, version in expected}
    assert {name for name, version in others if version in runtimes} == set()
    assert {(name, version) for name, version in others if version in CUPTI_SONAMES} == {
        (name, soname) for name in CUPTI_WRAPPERS for soname in CUPTI_SONAMES
    }
    assert {name for name, _ in others if OURS.match(name)} == set()


def test_the_version_that_unversioned_references_take_comes_first():
    done = subprocess.run(["readelf", "-V", "-W", LIBTARE], capture_output=True, text=True)
    definitions = re.findall(r"Index: (\d+)\s+Cnt: 1\s+Name: (\S+)", done.stdout)
    assert definitions[: 2 + len(SONAMES)] == [
        ("1", "libtare.so"),
        ("2", "TARE"),
        *((str(3 + i), soname) for i, soname in enumerate(SONAMES.values())),
    ]


@pytest.mark.parametrize("major", SONAMES)
def test_rows_are_whole(major):
    rows = table(major)
    assert len({name for name, _, _, _ in rows}) == len(rows)
    for name, _, params, args in rows:
        # The last word of each parameter is its name; the call has to give them in that order.
        given = [] if params == "void" else [re.findall(r"\w+", p)[-1] for p in params.split(",")]
        assert given == [arg.strip() for arg in args.split(",") if arg], name


def packages():
    roots = [Path(sysconfig.get_paths()["purelib"]) / "nvidia", Path("/usr/local")]
    roots += [Path(p) for p in os.environ.get("CUDA_PACKAGES", "").split(":") if p]
    found = {}
    for root in roots:
        for header in sorted(root.glob("**/cuda_runtime_api.h")):
            version = re.search(r"define CUDART_VERSION\s+(\d+)", header.read_text())
            if version and int(version[1]) >= 11080 and int(version[1]) // 1000 in SONAMES:
                found.setdefault(int(version[1]), header.parent)
    return found


PACKAGES = packages()
HEADERS = [pytest.param(v, d, id=f"{v // 1000}.{v % 1000 // 10}") for v, d in PACKAGES.items()]
needs_headers = pytest.mark.skipif(not PACKAGES, reason="no CUDA headers")


def find_runtime(include, major):
    """The library that belongs to these headers."""
    found = [p for p in include.parent.glob("lib*/**/libcudart.so.*") if p.name == SONAMES[major]]
    if not found:
        pytest.skip("headers without their library")
    return found[0].resolve().parent / SONAMES[major]


def compiler(include):
    # nvcc's own package has what the headers include; for C an empty file does.
    return ["gcc", "-std=gnu17", "-x", "c", "-isystem", include, "-idirafter",
            ROOT / "tests" / "sim" / "include", "-I", ROOT]  # fmt: skip


@needs_headers
@pytest.mark.parametrize("version, include", HEADERS)
def test_prototypes_are_nvidias(version, include, tmp_path):
    """A prototype of the table beside the header's: a difference is a compiler's error."""
    source = tmp_path / "prototypes.c"
    source.write_text(
        """
        #include <cuda_runtime_api.h>
        typedef struct cudaExecutionContext_st *cudaExecutionContext_t;
        #if CUDART_VERSION < 12030
        typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
        #endif
        #define HOOK(name, forms, category, event, params, ...) cudaError_t name params;
        #define HOOK_DEVICE(name, params, ...) cudaError_t name params;
        #include "preload/cuda_hooks.def"
        """
    )
    major = version // 1000
    command = [*compiler(include), "-fsyntax-only", f"-DCUDART_MAJOR={major}", source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # One that the header does not declare proves nothing above.
    header = "".join((include / f).read_text() for f in ("cuda_runtime_api.h", "driver_types.h"))
    unknown = {name for name, _, _, _ in table(major) if not re.search(rf"\b{name}\(", header)}
    assert unknown - {"__cudaLaunchKernel"} <= NEWER.get(major, set())


LAYOUT = {
    "struct cudaMemcpy3DParms": "srcArray srcPos srcPtr dstArray dstPos dstPtr extent kind",
    "struct cudaMemcpy3DPeerParms": "srcArray srcPos srcPtr srcDevice dstArray dstPos dstPtr "
    "dstDevice extent",
    "struct cudaPitchedPtr": "ptr pitch xsize ysize",
    "struct cudaExtent": "width height depth",
    "struct cudaPointerAttributes": "type",
    "struct cudaLaunchParams": "stream",
    "cudaLaunchConfig_t": "gridDim blockDim stream",
    "dim3": "x y z",
}
BY_VALUE = "dim3", "struct cudaPitchedPtr", "struct cudaExtent", "enum cudaMemcpyKind", "cudaError_t"
VALUES = (
    "cudaSuccess cudaErrorNotSupported cudaMemcpyHostToHost cudaMemcpyHostToDevice "
    "cudaMemcpyDeviceToHost cudaMemcpyDeviceToDevice cudaMemcpyDefault"
)


@needs_headers
@pytest.mark.parametrize("version, include", HEADERS)
def test_layouts_are_nvidias(version, include, tmp_path):
    expressions = [f"sizeof({t})" for t in BY_VALUE] + VALUES.split()
    for struct, members in LAYOUT.items():
        if struct == "struct cudaLaunchParams" and version >= 13000:
            continue
        expressions += [f"offsetof({struct}, {member})" for member in members.split()]
    lines = "".join(f'printf("{e} %zu\\n", (size_t)({e}));\n' for e in expressions)
    outputs = []
    for header in "<cuda_runtime_api.h>", '"preload/cuda_types.h"':
        source, program = tmp_path / "layout.c", tmp_path / "layout"
        source.write_text(
            f"#include <stddef.h>\n#include <stdio.h>\n#include {header}\n"
            f"int main(void)\n{{\n{lines}}}\n"
        )
        subprocess.run([*compiler(include), source, "-o", program], check=True)
        outputs.append(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    assert outputs[0] == outputs[1]


@needs_headers
@pytest.mark.parametrize("version, include", HEADERS)
def test_names_exist_in_the_runtime(version, include):
    major = version // 1000
    runtime = find_runtime(include, major)
    real = {name for name, _ in dynamic_symbols(runtime)}
    missing = {re.sub("_pts?[dz]s?$", "", name) for name in set(names(major)) - real}
    assert missing <= NEWER.get(major, set())
    assert {version for _, version in dynamic_symbols(runtime)} == {"@" + SONAMES[major]}
