/*
 * library_plugin.c: calls NAME, the function of a library that it is linked with, or that is in it.
 */
int NAME(void *argument);
__attribute__((visibility("default"))) int plugin_run(void);

int plugin_run(void)
{
	int first = NAME(0);

	/* The second call is not the one that finds the function. */
	return NAME(0) == first ? first : -1;
}
