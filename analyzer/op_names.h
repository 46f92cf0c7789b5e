/*
 * op_names.h: readable names of operators and backward nodes from what the trace has of them.
 *
 * For analyzer/. The results are to be freed.
 */
#pragma once

#include <stddef.h>

/*
 * Of an OP record's symbol: "aten::mul.Tensor" of at::_ops::mul_Tensor::call. A name ("my::op") stays as
 * it is; of other functions the qualified name, without parameters.
 */
char *op_name_of_symbol(const char *symbol, size_t length);

/* Of a NODE_TYPE record: "MulBackward0" of torch::autograd::generated::MulBackward0. */
char *node_name_of_type(const char *type, size_t length);
