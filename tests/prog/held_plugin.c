/* held_plugin.c: what held_calls.py calls; linked with held_runtime.c. */
int cudaStreamQuery(void *stream);
int cudaStreamSynchronize(void *stream);
void runtime_wait(void);
void runtime_release(void);

/* Is in a call of the CUDA runtime, without the GIL, until plugin_release. */
int plugin_block(void)
{
	return cudaStreamSynchronize((void *)0);
}

void plugin_wait(void)
{
	runtime_wait();
}

void plugin_release(void)
{
	runtime_release();
}

int plugin_calls(int count)
{
	int sum = 0;

	while (count--)
		sum += cudaStreamQuery((void *)0);
	return sum;
}
