/*
 * set_up.c: waits for libtorch, then puts the hooks in place, once; the entry points of this folder.
 *
 * The interposed functions (operator_tap.c, nodes.c) are in place from the start, and pass through
 * until then.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "torchhooks/torch.h"

#define SUSPICIOUS_SECTIONS 64u
#define ATTEMPTS_MAX        8u

struct torch torch;

void torchhooks_python_ready(void);
void torchhooks_library_loaded(void);
void torchhooks_fork_child(void);

/*
 * By SONAME: libtorch is loaded RTLD_LOCAL, so that RTLD_NEXT does not see it. dlopen is wrapped: this
 * call is not to look as if something had been loaded.
 */
void *torch_loaded(const char *soname)
{
	bool changed = tare_tls.libraries_changed;
	void *handle = dlopen(soname, RTLD_NOLOAD | RTLD_LAZY);

	tare_tls.libraries_changed = changed;
	return handle;
}

void *torch_find(const char *symbol)
{
	void *libtorch = torch_loaded("libtorch_cpu.so");

	return libtorch ? dlsym(libtorch, symbol) : NULL;
}

/* "2.14.1+cu130" of the line __version__ = '2.14.1+cu130' in torch/version.py, above torch/lib. */
static bool read_version(char *version, size_t room)
{
	char path[1024], text[4096], *slash, *start, *end;
	ssize_t bytes;
	Dl_info info;
	int file;

	if (!torch.range_name || !dladdr((void *)torch.range_name, &info) || !info.dli_fname ||
	    strlen(info.dli_fname) + sizeof("version.py") > sizeof(path))
		return false;
	strcpy(path, info.dli_fname);
	for (int i = 0; i < 2; i++) {
		if (!(slash = strrchr(path, '/')))
			return false;
		*slash = '\0';
	}
	strcat(path, "/version.py");
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	bytes = read(file, text, sizeof(text) - 1);
	close(file);
	if (bytes <= 0)
		return false;
	text[bytes] = '\0';
	if (!(start = strstr(text, "__version__ = '")))
		return false;
	start += strlen("__version__ = '");
	if (!(end = strchr(start, '\'')) || (size_t)(end - start) >= room)
		return false;
	memcpy(version, start, (size_t)(end - start));
	version[end - start] = '\0';
	return true;
}

static void note_version(void)
{
	char version[64];

	if (read_version(version, sizeof(version)))
		tare_note_info("torch", version);
}

static void set_up_ops(void)
{
	const char *missing = NULL;

	if (tare_process.layers & TARE_LAYER_OPS_RECORD_FUNCTION) {
		torch.ops_by_record_function = ops_register();
		tare_note_layer("ops.record_function", torch.ops_by_record_function ? 1 : 2,
				"each operator, as TARE_LAYERS asks for");
		return;
	}
#if defined(__x86_64__)
	if (!torch_find("_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE"))
		missing = "this torch has no getStepCallbacksUnlessEmpty";
#else
	missing = "not available on this processor";
#endif
	if (!missing) {
		torch.unwinds = stack_words_set_up();
		if (torch.unwinds)
			tare_op_runs = operator_runs;
		torch.ops_by_tap = true;
		tare_note_layer("ops.tap", 0, "no operator was dispatched");
		return;
	}
	tare_note_layer("ops.tap", 2, missing);
	torch.ops_by_record_function = ops_register();
	tare_note_layer("ops.record_function", torch.ops_by_record_function ? 1 : 2,
			"each operator, instead of the tap");
}

static void set_up(void)
{
#define FUNCTION_(name, type, arguments, symbol) torch.name = (type(*) arguments)torch_find(symbol);
	TORCH_FUNCTIONS(FUNCTION_)
#undef FUNCTION_
	note_version();
	tare_note_layer("ops.node", 0, "no backward node was evaluated");
	set_up_ops();
	if (sections_patch()) {
		tare_note_layer("ops.section", 1,
				"where libtorch_python releases and takes the GIL");
	} else {
		tare_note_layer("ops.section", 2,
				"libtorch_python's calls of the interpreter were not found");
		/* Nothing else would tell that the tap does not fire. */
		if (torch.ops_by_tap)
			ops_register();
	}
	if (torch.ops_by_tap)
		tare_note_layer("ops.range", 1, "record_function, by its operators");
	else
		ranges_register();
	__atomic_store_n(&tap_wanted, torch.ops_by_tap, __ATOMIC_SEQ_CST);
}

void torchhooks_library_loaded(void)
{
	int saved_errno = errno;

	if (__atomic_load_n(&torch.found, __ATOMIC_RELAXED) ||
	    !(tare_process.layers & (TARE_LAYER_OPS | TARE_LAYER_OPS_RECORD_FUNCTION)))
		return;
	if (torch_loaded("libtorch_cpu.so") && torch_loaded("libtorch_python.so") &&
	    !__atomic_exchange_n(&torch.found, true, __ATOMIC_SEQ_CST))
		set_up();
	errno = saved_errno;
}

void torchhooks_python_ready(void)
{
	tare_calibrates("section", sections_calibrate);
#if defined(__x86_64__)
	tare_calibrates("op", tap_calibrate);
#endif
	torchhooks_library_loaded();
}

/*
 * An operator before that: where nothing that makes `preload/` look has happened since libtorch was
 * loaded. A program in C++ has no libtorch_python, and is not looked at again and again.
 */
void torch_not_found_yet(void)
{
	static uint32_t attempts;
	uint8_t state = tare_tls.state;

	if (state == TARE_INSIDE)
		return;
	tare_tls.state = TARE_INSIDE;
	torchhooks_library_loaded();
	tare_tls.state = state;
	if (++attempts < ATTEMPTS_MAX)
		return;
	/* Another thread may be setting up just now. */
	__atomic_store_n(&tap_wanted, false, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&torch.found, __ATOMIC_SEQ_CST))
		__atomic_store_n(&tap_wanted, true, __ATOMIC_SEQ_CST);
}

/* Ids stay; what they stand for is written again, see id_cache.h. */
void torchhooks_fork_child(void) {}

void torch_suspect_tap(void)
{
	static uint32_t sections;

	if (torch.ops_by_tap &&
	    __atomic_add_fetch(&sections, 1, __ATOMIC_RELAXED) == SUSPICIOUS_SECTIONS)
		ops_register();
}
