/* test_analyzer_names.c: names of operators and nodes; whose code it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/op_names.h"
#include "analyzer/origin.h"

static void check_op(const char *symbol, const char *expected)
{
	char *name = op_name_of_symbol(symbol, strlen(symbol));

	assert_string_equal(name, expected);
	free(name);
}

static void test_ops(void **state)
{
	(void)state;
	check_op("_ZN2at4_ops10mul_Tensor4callERKNS_6TensorES4_", "aten::mul.Tensor");
	check_op("_ZN2at4_ops12fill__Scalar4callERNS_6TensorERKN3c106ScalarE",
		 "aten::fill_.Scalar");
	check_op("_ZN2at4_ops9clamp_min4callERKNS_6TensorERKN3c106ScalarE", "aten::clamp_min");
	check_op("_ZN2at4_ops16clamp_min_Tensor4callERKNS_6TensorES4_", "aten::clamp_min.Tensor");
	check_op("_ZN2at4_ops4relu4callERKNS_6TensorE", "aten::relu");
	check_op("_ZN2at4_ops5relu_4callERNS_6TensorE", "aten::relu_");
	check_op("_ZN2at4_ops19empty_memory_format4callEv", "aten::empty.memory_format");
	check_op("_ZN2at4_ops19_local_scalar_dense4callERKNS_6TensorE",
		 "aten::_local_scalar_dense");
	check_op("_ZN2at4_ops23_foreach_mul_Tensor_out4callEv", "aten::_foreach_mul.Tensor_out");
	check_op("_ZN2at4_ops14__and___Tensor4callEv", "aten::__and__.Tensor");
	check_op("_ZN2at4_ops10mul_Tensor10redispatchEN3c1014DispatchKeySetERKNS_6TensorES6_",
		 "aten::mul.Tensor");
	/* One that the list does not know. */
	check_op("_ZN2at4_ops11no_such_op_4callEv", "aten::no_such_op_");
	check_op("aten::add.Tensor", "aten::add.Tensor");
	check_op("my_ops::fused_thing", "my_ops::fused_thing");
	check_op("_ZNK3c1010Dispatcher9callBoxedERKNS_14OperatorHandleE",
		 "c10::Dispatcher::callBoxed");
	check_op("libfoo.so+0x1234", "libfoo.so+0x1234");
	check_op("unknown caller", "unknown caller");
	check_op("", "");
	/* Lengths that lie. */
	check_op("_ZN2at4_ops99mul_Tensor4callE", "at::_ops");
	check_op("_ZN99999999999999999999at", "_ZN99999999999999999999at");
	check_op("_ZN", "_ZN");
	/* A zero byte inside. */
	char *name = op_name_of_symbol("_ZN2at4_ops5add\0\0E", 17);
	assert_string_equal(name, "aten::add");
	free(name);
}

static void check_node(const char *type, const char *expected)
{
	char *name = node_name_of_type(type, strlen(type));

	assert_string_equal(name, expected);
	free(name);
}

static void test_nodes(void **state)
{
	(void)state;
	check_node("N5torch8autograd9generated12MulBackward0E", "MulBackward0");
	check_node("N5torch8autograd14AccumulateGradE", "AccumulateGrad");
	check_node("N5torch8autograd7CppNodeI10MyFunctionEE", "CppNode<MyFunction>");
	check_node("N5torch8autograd7CppNodeIN2my8FunctionEEE", "CppNode<Function>");
	check_node("6PyNode", "PyNode");
	check_node("", "");
	check_node("N", "N");
	check_node("N5", "N5");
}

static void test_origin(void **state)
{
	static const struct {
		const char *file, *name;
		bool user;
	} cases[] = {
		{ "train.py", "main", true },
		{ "/srv/u/project/train.py", "main", true },
		{ "/srv/u/python3/train.py", "main", true },
		{ "/srv/u/lib/train.py", "main", true },
		{ "/srv/lib/models/net.py", "Net.forward", true },
		{ "/srv/u/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py",
		  "Linear.forward", false },
		{ "/srv/u/venv/lib64/python3.13t/site-packages/torch/__init__.py", "f", false },
		{ "/usr/lib/python3/dist-packages/numpy/core/numeric.py", "ones", false },
		{ "/usr/lib/python3.11/threading.py", "Thread.run", false },
		{ "/opt/pyenv/versions/3.9.18/lib/python3.9/json/decoder.py", "decode", false },
		{ "/usr/lib/python311.zip/os.py", "walk", false },
		{ "<frozen importlib._bootstrap>", "_find_and_load", false },
		{ "<frozen os>", "join", false },
		{ "<string>", "<module>", true },
		{ "<string>", "__create_fn__.<locals>.__init__", false },
		{ "<stdin>", "<module>", true },
		{ "<ipython-input-3-abc>", "<module>", true },
		{ "<eval_with_key>.12", "forward", false },
		{ "<__array_function__ internals>", "dot", false },
		{ "/tmp/ipykernel_12/345.py", "<module>", true },
		{ "", "?", false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (origin_is_user(cases[i].file, cases[i].name) != cases[i].user)
			fail_msg("%s is %sthe user's", cases[i].file, cases[i].user ? "" : "not ");
	assert_true(origin_is_import("<frozen importlib._bootstrap_external>"));
	assert_false(origin_is_import("<frozen os>"));
}

static void check_short(const char *file, const char *text, const char *module)
{
	char *short_name = origin_short(file), *module_name = origin_module(file);

	assert_string_equal(short_name, text);
	assert_string_equal(module_name, module);
	free(short_name);
	free(module_name);
}

static void test_short(void **state)
{
	(void)state;
	check_short("/v/lib/python3.11/site-packages/torch/nn/modules/linear.py",
		    "torch/nn/modules/linear.py", "torch.nn.modules.linear");
	check_short("/v/lib/python3.11/site-packages/torch/__init__.py", "torch/__init__.py",
		    "torch");
	check_short("/usr/lib/python3.11/threading.py", "threading.py", "threading");
	check_short("/srv/u/train.py", "train.py", "train");
	check_short("train.py", "train.py", "train");
	check_short("<string>", "<string>", "<string>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ops),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_origin),
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
