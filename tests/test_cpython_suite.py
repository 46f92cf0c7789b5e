"""
CPython's own regression tests, bare and under the preload: each test of each module ends the same, or as
it does with a frame evaluator that only forwards (prog/plain_evaluator.c): what any such does (PEP 523)
is no difference of ours.

Needs an interpreter that ships its tests (pyenv's do). A test that differs is run again, since some of
them fail now and then by themselves. TARE_SUITE_PYTHON=3.12.1 chooses the interpreter.
"""

import fnmatch
import os
import shutil
import subprocess
import xml.etree.ElementTree

import pytest
from conftest import LIBTARE, PYTHONS, clean_environment

pytestmark = pytest.mark.slow

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

# Differences that are ours, and why: {"module: test": reason}, patterns.
DIFFERENCES = {}


def interpreters():
    chosen = os.environ.get("TARE_SUITE_PYTHON")
    for name, path in PYTHONS.items():
        if chosen and name != chosen:
            continue
        done = subprocess.run([path, "-c", "import test.test_sys"], capture_output=True)
        if done.returncode == 0:
            yield name, path


def module_exists(python, module):
    find = f"import importlib.util as u, sys; sys.exit(u.find_spec('test.{module}') is None)"
    return subprocess.run([python, "-c", find]).returncode == 0


def results(python, module, folder, preload=None):
    """{test: "passed", "failure", "error" or "skipped"}, and how the whole ended."""
    report = folder / "report.xml"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "traces").mkdir(parents=True)
    env = {"TMPDIR": folder, "TARE_MAX_BYTES": "64M", "TARE_OUTPUT": f"{folder}/traces/"}
    if preload:
        env["LD_PRELOAD"] = preload
    command = [python, "-m", "test", "--timeout", "240", "--junit-xml", report, module]
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            env=clean_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=300,
        )
        found = {"whole": "passed" if done.returncode == 0 else "failure"}
    except subprocess.TimeoutExpired:
        found = {"whole": "timeout"}
    if report.exists():
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            found[case.get("name")] = next(
                (part.tag for part in case if part.tag in ("failure", "error", "skipped")), "passed"
            )
    shutil.rmtree(folder, ignore_errors=True)
    return found


def differing(bare, traced):
    """Names of tests; the whole counts where no test explains it."""
    names = {name for name in bare.keys() | traced.keys() if bare.get(name) != traced.get(name)}
    return names - {"whole"} or names


def is_known(module, name):
    return any(fnmatch.fnmatchcase(f"{module}: {name}", pattern) for pattern in DIFFERENCES)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("python", [pytest.param(path, id=name) for name, path in interpreters()])
def test_module(python, module, program, tmp_path):
    if not module_exists(python, module):
        pytest.skip("this version has no such module")
    folder = tmp_path / "run"
    plain = program("plain_evaluator.c", "-shared", "-fPIC")
    different = None
    for _ in range(3):
        bare = results(python, module, folder)
        traced = results(python, module, folder, LIBTARE)
        now = {name for name in differing(bare, traced) if not is_known(module, name)}
        if now:
            forwarding = results(python, module, folder, plain)
            now &= differing(forwarding, traced)
        different = now if different is None else different & now
        if not different:
            return
    assert not different, sorted((name, bare.get(name), traced.get(name)) for name in different)
