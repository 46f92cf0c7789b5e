#!/usr/bin/env python3
"""Builds stand-ins for the CUDA math libraries that an installed torch is linked with.

Reads torch's undefined symbols with nm, gives each name a rule (stub.c says what they do), and
compiles one small library per SONAME, with the version nodes torch asks for. The build calls it
when torch's version, this file or a stub's source has changed.

    gen_stubs.py --torch SITE/torch --cc 'gcc -O2 ...' --link '-L... -ltaresim ...' --out FOLDER
"""
import argparse
import concurrent.futures
import pathlib
import re
import shlex
import subprocess

HERE = pathlib.Path(__file__).resolve().parent

# Libraries torch is linked with that the simulator does not replace, or replaces elsewhere.
NOT_STUBBED = re.compile(r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp\b.*|torch.*|c10.*|shm|caffe2.*"
                         r"|cuda|cudart|z|numa|ittnotify.*|mkl.*|iomp5)\.so|ld-linux")
# Replaced only where the wheel's own is not installed: they work without a driver.
KEPT = re.compile(r"lib(nvrtc|cupti)\.so")
# Names imported without a version, by library.
UNVERSIONED = [(r"cusparseLt", "libcusparseLt"), (r"p?nccl[A-Z]", "libnccl"), (r"cuFile", "libcufile"),
               (r"nvshmem", "libnvshmem_host")]

# The first that fits a name gives its rule; a body in stub_<library>.c goes before all of them.
# OUT4 and OUT8 have the position of the argument, from 0, that points to a size: the simulated
# libraries need no workspace.
RULES = [
    (r"cupti", "FAIL"),
    (r"cu\w*SetStream(_v2)?$", "SET_STREAM"),
    (r"cu\w*GetStream(_v2)?$", "GET_STREAM"),
    (r"cu\w*(Destroy|_destroy)", "DESTROY"),
    (r"cusparseCreateIdentityPermutation", "WORK"),
    (r"cu(blas|blasLt|dnn|sparse|solverDn|solverSp|rand)\w*(Create|_create)", "CREATE"),
    (r"cublasGet(?!Matrix|Vector)", "GET"),
    (r"cusolverDn[SDCZ](geqrf|getrf|potrf)_bufferSize", "OUT4", 5),
    (r"cusolverDn[SDCZ](syevd|heevd|syevj|heevj|orgqr|ungqr)\w*_bufferSize", "OUT4", 7),
    (r"cusolverDn[SDCZ](ormqr|unmqr)_bufferSize", "OUT4", 11),
    (r"cusolverDn[SDCZ]sytrf_bufferSize", "OUT4", 4),
    (r"cusolverDn[SDCZ]gesvd_bufferSize", "OUT4", 3),
    (r"cusolverDn[SDCZ]gesvdj_bufferSize", "OUT4", 12),
    (r"cusolverDn[SDCZ]gesvdjBatched_bufferSize", "OUT4", 11),
    (r"cusolverDn[SDCZ]gesvdaStridedBatched_bufferSize", "OUT4", 15),
    (r"cusolverDnXpotrf_bufferSize", "OUT8", 8, 9),
    (r"cusolverDnXgeqrf_bufferSize", "OUT8", 10, 11),
    (r"cusolverDnX(syevd|syevBatched|sytrs)_bufferSize", "OUT8", 11, 12),
    (r"cusolverDnXgeev_bufferSize", "OUT8", 17, 18),
    (r"cusparse(SpMM|SDDMM|SpSM)_bufferSize", "OUT8", 10),
    (r"cusparse(SpMV|SpSV)_bufferSize", "OUT8", 9),
    (r"cusparseSpGEMM_(workEstimation|compute)", "OUT8", 11),
    (r"cusparseSpMatGetSize", "OUT8", 1, 3),
    (r"cusparse[SDCZ]csrgeam2_bufferSizeExt", "OUT8", 19),
    (r"cusparseX(coosort|csrsort)_bufferSizeExt", "OUT8", 6),
    (r"cusparse[SDCZ]bsrsv2_bufferSize", "OUT4", 11),
    (r"cusparse[SDCZ]bsrsm2_bufferSize", "OUT4", 13),
    (r"cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize", "OUT8", 8),
    (r"cudnnGetBatchNormalizationBackwardExWorkspaceSize", "OUT8", 10),
    (r"cudnnGetBatchNormalizationTrainingExReserveSpaceSize", "OUT8", 5),
    (r"cudnnGetConvolution\w*WorkspaceSize", "OUT8", 6),
    (r"cudnnGetCTCLossWorkspaceSize_v8", "OUT8", 5),
    (r"cudnnGetCTCLossWorkspaceSize", "OUT8", 8),
    (r"cudnnGetRNNTempSpaceSizes", "OUT8", 4, 5),
    (r"cudnnDropoutGetStatesSize", "OUT8", 1),
    (r"\w*(_analysis|_preprocess|Nnz$|zeroPivot)", "PLAIN"),
    (r"cu(blas|solverDn|solverSp)(?!Set|Get|Lt)[SDCZHIGX]\w*", "WORK"),
    (r"cusparse([SDCZX][a-z]|Sp|SD)(?!\w*(Set|Get))\w*", "WORK"),
    (r"cudnn(?!Set|Get|Find)\w*(Forward|Backward|Execute|Inference|CTCLoss)", "WORK"),
]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", str(library)))


def imports(library):
    """The undefined names of a library, each with its version, or None."""
    for line in run("nm", "-D", "--undefined-only", str(library)).splitlines():
        name, _, version = line.split()[-1].partition("@")
        yield name, version.lstrip("@") or None


def stem(soname):
    return soname.split(".so")[0]


def wanted(torch):
    """{soname: {version node or None: {names}}} of the libraries to make."""
    libraries = sorted((torch / "lib").glob("*.so"))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        sonames = {s for names in pool.map(needed, libraries) for s in names}
        undefined = {i for names in pool.map(lambda l: list(imports(l)), libraries) for i in names}
    site = torch.parent
    found = {}
    for soname in sonames:
        if NOT_STUBBED.match(soname):
            continue
        if KEPT.match(soname) and any(site.glob(f"nvidia/*/lib/{soname}")):
            continue
        found[soname] = {}
    by_stem = {stem(s): s for s in found}
    for name, version in undefined:
        soname = version if version in found else None
        if version == "NVSHMEM":
            soname = by_stem.get("libnvshmem_host")
        if not version:
            soname = next((by_stem.get(s) for p, s in UNVERSIONED if re.match(p, name)), None)
        if soname:
            found[soname].setdefault(version, set()).add(name)
    return found


def rule(name):
    """The rule of a name and the first and last argument it is about."""
    for pattern, kind, *at in RULES:
        if re.match(pattern, name):
            return kind, at[0] if at else 0, at[-1] if at else 0
    return "PLAIN", 0, 0


def bodies(soname):
    """The sources with a library's own bodies, and the names they define."""
    name = stem(soname)[3:]
    sources = sorted([*HERE.glob(f"stub_{name}.c"), *HERE.glob(f"stub_{name}_*.c")])
    return sources, [n for s in sources for n in re.findall(r"^BODY\([^,]+, (\w+)\)", s.read_text(), re.M)]


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def build(soname, versions, options):
    own_sources, extra = bodies(soname)
    # Names without a version, and those only a body has, get the library's own node: an unversioned
    # import accepts any.
    own = next((v for v in versions if v), soname)
    versions.setdefault(own, set()).update(extra, versions.pop(None, ()))
    names = sorted(set().union(*versions.values()))
    listed = options.out / "gen" / f"{soname}.names"
    script = options.out / "gen" / f"{soname}.map"
    write(listed, "".join("FN({}, {}, {}, {})\n".format(n, *rule(n)) for n in names))
    write(script, "".join(f"{node} {{ {'global:' if members else 'local: *;'} "
                          f"{' '.join(n + ';' for n in sorted(members))} }};\n"
                          for node, members in versions.items()))
    # libcurand: torch is linked with it and imports nothing.
    sources = [str(HERE / "stub.c"), *map(str, own_sources)] if names else ["-xc", "/dev/null", "-xnone"]
    subprocess.run([*shlex.split(options.cc), f'-DSIM_NAMES="{listed}"', f'-DSIM_SONAME="{soname}"',
                    f"-I{HERE}", "-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{soname}",
                    f"-Wl,--version-script={script}", *sources, "-o", str(options.out / soname),
                    *shlex.split(options.link)], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--torch", type=pathlib.Path, required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--link", default="")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out = options.out.resolve()
    (options.out / "gen").mkdir(parents=True, exist_ok=True)
    libraries = wanted(options.torch)
    for old in options.out.glob("lib*"):
        if old.name not in libraries:
            old.unlink()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda item: build(*item, options), libraries.items()))


if __name__ == "__main__":
    main()
