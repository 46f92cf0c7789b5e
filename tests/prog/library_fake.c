/*
 * library_fake.c: stands in for one function, NAME, of a library. It answers ANSWER.
 */
int NAME(void *argument);

int NAME(void *argument)
{
	(void)argument;
	return ANSWER;
}
