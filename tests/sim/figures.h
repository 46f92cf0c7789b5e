/*
 * The figures of the simulated device: a data-centre GPU, rounded. Nothing depends on them but a
 * library's choice of path.
 */
#ifndef TARE_SIM_FIGURES_H
#define TARE_SIM_FIGURES_H

#define SIM_NAME "Simulated GPU"
/* The last byte is the device's number. */
#define SIM_UUID "simulated GPU  "

enum {
	SIM_SM_COUNT = 132,
	SIM_WARP = 32,
	SIM_BLOCK_THREADS = 1024,
	SIM_SM_THREADS = 2048,
	SIM_SM_BLOCKS = 32,
	SIM_REGISTERS = 65536,
	SIM_SHARED = 48 << 10,
	SIM_SHARED_OPTIN = 227 << 10,
	SIM_SHARED_SM = 228 << 10,
	SIM_SHARED_RESERVED = 1 << 10,
	SIM_L2 = 50 << 20,
	SIM_CONSTANT = 64 << 10,
	SIM_GRID_X = 0x7fffffff,
	SIM_GRID_YZ = 65535,
	SIM_BLOCK_Z = 64,
	SIM_CLOCK_KHZ = 1980000,
	SIM_MEMORY_CLOCK_KHZ = 2619000,
	SIM_BUS_WIDTH = 5120,
	SIM_TEXTURE_ALIGNMENT = 512,
	SIM_ENGINES = 3,
};

#endif
