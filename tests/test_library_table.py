"""
The table of hooked library functions, without running any: what libtare.so exports, and that prototypes
and types are NVIDIA's. Headers come from the CUDA packages that the tests' Python has, and from the folders
in CUDA_PACKAGES (separated by colons).
"""

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from conftest import LIBTARE, ROOT
from test_cuda_table import dynamic_symbols

SITE = Path(sysconfig.get_paths()["purelib"])


def preprocess(text):
    command = ["gcc", "-E", "-P", "-x", "c", "-I", ROOT, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def expand(text):
    """[fields] of each row that `text` makes of the table: `@ field ; field ...`."""
    out = preprocess(f'#include "preload/library_hooks.def"\n{text}\n')
    rows = [" ".join(row.split()) for row in out.split("@")[1:]]
    return [[field.strip() for field in row.split(";")] for row in rows]


def table():
    """[(library, name, parameters, arguments)] as texts."""
    return expand(
        """
        #define HOOK(library, name, params, args) @ library ; name ; params ; args
        #include "preload/library_hooks.def"
        """.replace("library ;", "#library ;")
    )


def sonames():
    """{library: [(soname, version node)]}"""
    found = {}
    for tag, soname, node in expand(
        "#define NODE(tag, soname, node, ...) @ tag ; soname ; node\nLIBRARIES(NODE)"
    ):
        pair = soname.strip('"'), node.strip('"')
        found.setdefault(tag.rpartition("_")[0], []).append(pair)
    return found


TABLE = [(library.strip('"'), *rest) for library, *rest in table()]
SONAMES = sonames()


def test_exports_are_the_table():
    nodes = {node for versions in SONAMES.values() for _, node in versions}
    exported = {(n, v) for n, v in dynamic_symbols(LIBTARE) if v.lstrip("@") in nodes}
    expected = {(name, node) for library, name, _, _ in TABLE for _, node in SONAMES[library]}
    # One @: none is a default version, so dlsym(RTLD_DEFAULT) finds the real function, not ours.
    assert exported == expected


def test_rows_are_whole():
    assert len({name for _, name, _, _ in TABLE}) == len(TABLE)
    for _, name, params, args in TABLE:
        params, args = params[1:-1], args[1:-1]
        given = [] if params == "void" else [re.findall(r"\w+", p)[-1] for p in params.split(",")]
        assert given == [arg.strip() for arg in args.split(",") if arg], name


def test_torch_reaches_the_wrappers():
    """By the versions that torch asks for. Of NCCL's there is none."""
    folder = SITE / "torch" / "lib"
    if not (folder / "libtorch_cuda.so").exists():
        pytest.skip("a torch without CUDA")
    command = ["nm", "-D", "--undefined-only", *folder.glob("libtorch_cuda*.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wanted = {line.split()[-1] for line in done.stdout.splitlines() if line.startswith(" ")}
    ours = set()
    for library, name, _, _ in TABLE:
        versions = {f"{name}@{node}" if node != "TARE" else name for _, node in SONAMES[library]}
        if versions & wanted:
            ours.add(library)
        # A version that we do not know would not be seen.
        asked = {w for w in wanted if w.partition("@")[0] == name}
        assert asked <= versions, name
    assert ours == set(SONAMES)


FOLDERS = [SITE / "nvidia" / f / "include" for f in ("cu13", "cudnn", "nccl")]
FOLDERS += [Path(p) for p in os.environ.get("CUDA_PACKAGES", "").split(":") if p]
INCLUDES = [f for f in FOLDERS if f.is_dir()]
HEADERS = "cublas_v2.h cublasLt.h cudnn.h cusparse.h cusolverDn.h cufft.h cufftXt.h nccl.h".split()
NVIDIA = "".join(f"#include <{h}>\n" for h in HEADERS)
STATUS = {
    "CUBLAS": "cublasStatus_t",
    "CUBLASLT": "cublasStatus_t",
    "CUDNN": "cudnnStatus_t",
    "CUSPARSE": "cusparseStatus_t",
    "CUSOLVER": "cusolverStatus_t",
    "CUFFT": "cufftResult",
    "NCCL": "ncclResult_t",
}
needs_headers = pytest.mark.skipif(
    not all(any((f / h).exists() for f in INCLUDES) for h in HEADERS),
    reason="no headers of the CUDA libraries",
)


def compiler():
    # The half types are C++'s, and cuda_runtime.h is nvcc's; neither is needed here.
    skip = ["-D__CUDA_FP16_H__", "-D__CUDA_BF16_H__", "-D__CUDA_FP8_H__", "-D__CUDA_RUNTIME_H__"]
    include = [word for folder in INCLUDES for word in ("-isystem", folder)]
    return ["gcc", "-std=gnu17", "-x", "c", *skip, *include, "-idirafter",
            ROOT / "tests" / "sim" / "include", "-I", ROOT]  # fmt: skip


@needs_headers
def test_prototypes_are_nvidias(tmp_path):
    source = tmp_path / "prototypes.c"
    statuses = "".join(f"#define STATUS_{k} {v}\n" for k, v in STATUS.items())
    source.write_text(
        NVIDIA
        + statuses
        + "#define HOOK(library, name, params, args) STATUS_##library name params;\n"
        + '#include "preload/library_hooks.def"\n'
    )
    done = subprocess.run([*compiler(), "-fsyntax-only", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # One that no header declares proves nothing above.
    source.write_text(NVIDIA)
    done = subprocess.run([*compiler(), "-E", "-P", source], capture_output=True, text=True)
    declared = set(re.findall(r"\b(\w+) ?\(", done.stdout))
    assert {name for _, name, _, _ in TABLE} - declared == set()


@needs_headers
def test_arguments_are_passed_as_nvidias(tmp_path):
    """Each parameter's type has the same size. Which are floating-point the table says itself."""
    types = set()
    for _, _, params, _ in TABLE:
        for param in params[1:-1].split(","):
            types.add(re.sub(r"\w+$", "", param.strip()).strip())
    types = sorted(types - {"", "void"})
    sizes = "".join(f'printf("%zu\\n", sizeof({t}));\n' for t in types)
    outputs = []
    for header in NVIDIA, '#include "preload/library_types.h"\n':
        source, program = tmp_path / "sizes.c", tmp_path / "sizes"
        source.write_text(f"#include <stdio.h>\n{header}int main(void)\n{{\n{sizes}}}\n")
        subprocess.run([*compiler(), source, "-o", program], check=True)
        outputs.append(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    assert outputs[0] == outputs[1]
