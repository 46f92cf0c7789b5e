/*
 * version.h: tare's own version, for both sides.
 */
#pragma once

#define TARE_VERSION "0.1"
