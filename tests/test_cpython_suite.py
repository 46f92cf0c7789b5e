"""
CPython's own regression tests, bare and under the preload: each test of each module ends the same, but for those
that suite_differences.toml lists and explains. docs/cpython-suite.md shows what came out: `make suite-doc`.

Needs an interpreter that ships its tests (pyenv's do). TARE_SUITE_PYTHON=3.12.1 chooses one.
"""

import os
from pathlib import Path

import pytest
import suite_doc
from conftest import PYTHONS
from suites import check_suite, run_suite

MODULES = """
    test_generators test_coroutines test_asyncgen test_contextlib test_contextlib_async test_yield_from
    test_genexps test_threading test_threading_local test_thread test_threadsignals test_thread_local_bytecode
    test_fork1 test_subprocess test_multiprocessing_fork test_multiprocessing_spawn
    test_multiprocessing_forkserver test_multiprocessing_main_handling test_concurrent_futures test_signal
    test_exceptions test_exception_group test_sys test_sys_settrace test_sys_setprofile test_monitoring
    test_frame test_code test_codeop test_gc test_os test_posix test_faulthandler test_call test_descr
    test_dis test_asyncio test_traceback test_raise test_with test_scope test_class test_functools
    test_inspect test_types test_super test_property test_weakref test_copy test_pickle test_json test_re
    test_sort test_itertools test_operator test_builtin test_compile test_ast test_import test_importlib
    test_runpy test_cmd_line test_atexit test_interpreters test__xxsubinterpreters test_capi test_embed
    test_ctypes test_cprofile test_profile test_trace test_bdb test_pdb test_audit test_site
    test_unraisable test_warnings test_tracemalloc test_logging test_queue test_sched test_select
    test_selectors test_socket test_mmap test_resource test_perf_profiler test_gdb test_eintr
    test_finalization test_dynamic test_opcache test_peepholer test_listcomps test_patma test_bool
    test_pyclbr test_popen test_pty test_tempfile test_shutil test_zipimport test_readline test_unittest
""".split()

# Packages of which each module runs by itself, since all of them take minutes.
SPLIT = (
    "test_asyncio",
    "test_concurrent_futures",
    "test_multiprocessing_fork",
    "test_multiprocessing_spawn",
    "test_multiprocessing_forkserver",
)


def folder_of_tests(version, python):
    """Where that interpreter has its tests, or None."""
    minor = ".".join(version.split(".")[:2])
    folder = Path(python).parent.parent / "lib" / f"python{minor}" / "test"
    return folder if (folder / "test_sys.py").exists() else None


def modules():
    chosen = os.environ.get("TARE_SUITE_PYTHON")
    for version, python in PYTHONS.items():
        folder = folder_of_tests(version, python)
        if not folder or chosen not in (None, version):
            continue
        for module in MODULES:
            if module in SPLIT and (folder / module).is_dir():
                for path in sorted((folder / module).glob("test_*.py")):
                    part = f"{module}.{path.stem}"
                    yield pytest.param(version, python, part, id=f"{version}-{part}")
            elif (folder / module).is_dir() or (folder / f"{module}.py").exists():
                yield pytest.param(version, python, module, id=f"{version}-{module}")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("version", "python", "module"), list(modules()))
def test_module(version, python, module, program, tmp_path):
    report = tmp_path / "report.xml"
    command = [python, "-m", "test", "--timeout", "500", "--fail-env-changed", "--junit-xml", report]

    def run(env, without=(), only=None):
        choice = ["--match", only] if only else [f"--ignore={test}" for test in without]
        return run_suite([*command, *choice, module], report, env)

    plain = program("plain_evaluator.c", "-shared", "-fPIC")
    check_suite("CPython", module, version, run, tmp_path / "traces", plain)


def test_the_document_has_the_reasons():
    path, _ = suite_doc.DOCUMENTS["CPython"]
    assert suite_doc.reasons("CPython") in path.read_text(), "make suite-doc"
