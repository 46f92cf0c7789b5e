/*
 * The event and metric interface of CUPTI 12 that a torch of that time imports (Kineto's) and never calls
 * unless asked: the names must exist, for torch binds all of them when it is loaded. Not supported, as on
 * a device newer than that interface. No header: only the names matter.
 */
enum { CUPTI_NOT_SUPPORTED = 27 };

#define NOT_SUPPORTED(name)                                                                        \
	__attribute__((visibility("default"))) int name(void)                                      \
	{                                                                                          \
		return CUPTI_NOT_SUPPORTED;                                                        \
	}

NOT_SUPPORTED(cuptiEventGetAttribute)
NOT_SUPPORTED(cuptiEventGetIdFromName)
NOT_SUPPORTED(cuptiEventGroupGetAttribute)
NOT_SUPPORTED(cuptiEventGroupReadEvent)
NOT_SUPPORTED(cuptiEventGroupSetAttribute)
NOT_SUPPORTED(cuptiEventGroupSetDisable)
NOT_SUPPORTED(cuptiEventGroupSetEnable)
NOT_SUPPORTED(cuptiEventGroupSetsCreate)
NOT_SUPPORTED(cuptiEventGroupSetsDestroy)
NOT_SUPPORTED(cuptiGetDeviceId)
NOT_SUPPORTED(cuptiMetricEnumEvents)
NOT_SUPPORTED(cuptiMetricGetAttribute)
NOT_SUPPORTED(cuptiMetricGetIdFromName)
NOT_SUPPORTED(cuptiMetricGetNumEvents)
NOT_SUPPORTED(cuptiMetricGetValue)
NOT_SUPPORTED(cuptiSetEventCollectionMode)
