/* The rows that a module's `extract` fills.
 *
 * In: u32 packets; per object u32 length of its initial value, bytes; per packet u32 port, u64 time, u32 length, bytes.
 * Out: u32 bytes of a row, u32 bits of the time; per packet u32 whether it has a row, and the row. Each packet lies in a
 * memory of exactly its length.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

static void take(void *to, size_t bytes)
{
	if (bytes && fread(to, bytes, 1, stdin) != 1)
		exit(3);
}

static void give(const void *from, size_t bytes)
{
	if (bytes && fwrite(from, bytes, 1, stdout) != 1)
		exit(4);
}

static void *must(void *p)
{
	if (!p)
		exit(5);
	return p;
}

int main(int argc, char **argv)
{
	const struct mr_module *(*entry)(void);
	const struct mr_module *module;
	struct mr_config config = { .hash_seed = 11, .sketch_seed = 22 };
	struct mr_instance *self;
	u32 packets, bits;
	u8 **initial, *row;

	*(void **)&entry = must(dlsym(must(argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL), "millrace_module"));
	module = entry();
	take(&packets, 4);
	initial = must(calloc(module->objects + 1, sizeof(*initial)));
	for (u32 i = 0; i < module->objects; i++) {
		u32 length;

		take(&length, 4);
		if (length)
			initial[i] = must(malloc(length));
		take(initial[i], length);
	}
	config.initial = (const u8 *const *)initial;
	self = must(aligned_alloc(64, (module->instance_bytes + 63) / 64 * 64));
	memset(self, 0, module->instance_bytes);
	if (module->create(self, &config))
		exit(6);
	row = must(malloc(module->history->bytes));
	bits = module->history->time_bits;
	give(&module->history->bytes, 4);
	give(&bits, 4);
	for (u32 i = 0; i < packets; i++) {
		struct mr_packet p = { .ports = 2, .number = i };
		u32 length, has;
		u8 *data;

		take(&p.port, 4);
		take(&p.time, 8);
		take(&length, 4);
		data = must(malloc(length ? length : 1));
		take(data, length);
		p.data = p.meta = p.floor = data;
		p.end = p.ceiling = data + length;
		memset(row, 0, module->history->bytes);
		has = module->history->extract(self, 0, &p, row);
		give(&has, 4);
		give(row, module->history->bytes);
		free(data);
	}
	return 0;
}
