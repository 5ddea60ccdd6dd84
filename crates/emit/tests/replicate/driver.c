/* Runs packets on one replica with their rows, and the rows alone on another.
 *
 * In: u32 packets, u32 from and u32 bits of rows that are cleared for the second replica (0: none); per object u32 whether
 * it is compared, u32 length of its initial value, bytes; per packet u32 program, u32 port, u64 time, u32 length, u32 the
 * byte that changes behind its row (0: none), bytes. Out: u32 rows, u32 first object that differs, from 1; per packet
 * u32 fate, u32 out, u32 length, bytes. Each packet and each burst of rows has a memory of exactly its length.
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
	if (!p) {
		fprintf(stderr, "driver: %s\n", dlerror());
		exit(5);
	}
	return p;
}

struct saved {
	const struct mr_object *object;
	u8 *bytes;
	size_t length, room;
};

static void add(struct saved *s, const void *from, size_t n)
{
	while (s->length + n > s->room) {
		s->room = s->room ? 2 * s->room : 4096;
		s->bytes = must(realloc(s->bytes, s->room));
	}
	if (n)
		memcpy(s->bytes + s->length, from, n);
	s->length += n;
}

static int keep(void *context, const struct mr_saved *piece)
{
	struct saved *s = context;
	struct mr_saved plain = *piece;

	plain.key = NULL;
	plain.value = NULL;
	add(s, &plain, sizeof(plain));
	if (piece->key)
		add(s, piece->key, s->object->key_bytes);
	if (piece->value)
		add(s, piece->value, piece->what == MR_SAVED_BYTES ? piece->length : s->object->value_bytes);
	return 0;
}

static struct mr_instance *instance(const struct mr_module *module, const struct mr_config *config, u64 time)
{
	struct mr_instance *self = must(aligned_alloc(64, (module->instance_bytes + 63) / 64 * 64));
	struct mr_packet none = { .time = time, .ports = 2 };

	memset(self, 0, module->instance_bytes);
	if (module->create(self, config))
		exit(6);
	if (module->start)
		module->start(self, &none);
	return self;
}

static void take_packet(struct mr_packet *p, u64 number, u32 *program, u32 *changed)
{
	u32 length;

	memset(p, 0, sizeof(*p));
	take(program, 4);
	take(&p->port, 4);
	take(&p->time, 8);
	take(&length, 4);
	take(changed, 4);
	p->data = p->meta = p->floor = must(malloc(length));
	p->end = p->ceiling = p->data + length;
	p->ports = 2;
	p->number = number;
	p->fate = 77;
	take(p->data, length);
}

int main(int argc, char **argv)
{
	const struct mr_module *(*entry)(void);
	const struct mr_module *module;
	struct mr_config config = { .hash_seed = 11, .sketch_seed = 22 };
	struct mr_instance *one = NULL, *other = NULL;
	u32 head[3], *compared, differs = 0, rows = 0, bytes;
	u8 **initial, *row, *all;
	u64 *near; /* time and number of each row's packet */
	struct mr_packet *packet;

	*(void **)&entry = must(dlsym(must(argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL), "millrace_module"));
	module = entry();
	bytes = module->history->bytes;
	take(head, sizeof(head));
	initial = calloc(module->objects + 1, sizeof(*initial));
	compared = calloc(module->objects + 1, sizeof(*compared));
	for (u32 i = 0; i < module->objects; i++) {
		u32 length;

		take(&compared[i], 4);
		take(&length, 4);
		if (length)
			initial[i] = must(malloc(length));
		take(initial[i], length);
	}
	config.initial = (const u8 *const *)initial;
	row = must(malloc(bytes));
	all = must(malloc((u64)bytes * head[0] + 1));
	packet = calloc(head[0] + 1, sizeof(*packet));
	near = calloc(2 * (u64)head[0] + 2, sizeof(*near));
	for (u32 i = 0; i < head[0]; i++) {
		struct mr_packet *p = &packet[i];
		u32 program, changed;

		take_packet(p, i, &program, &changed);
		if (!one) {
			one = instance(module, &config, p->time);
			other = instance(module, &config, p->time);
		}
		if (!module->history->extract(one, program, p, row)) {
			module->history->process(one, program, p, NULL, 0);
			continue;
		}
		memcpy(all + (u64)rows * bytes, row, bytes);
		near[2 * rows] = p->time;
		near[2 * rows + 1] = p->number;
		if (changed)
			p->data[changed] ^= 0xff;
		module->history->process(one, program, p, row, rows);
		rows++;
	}
	for (u32 i = 0; i < rows; i++)
		for (u32 b = head[1]; b < head[1] + head[2]; b++)
			all[(u64)i * bytes + b / 8] &= (u8)~(1u << b % 8);
	for (u32 i = 0; one && i < rows;) {
		u32 n = 1 + i % 7 * 13 % 40;
		u8 *copy;

		n = n < rows - i ? n : rows - i;
		copy = must(malloc((u64)n * bytes));
		memcpy(copy, all + (u64)i * bytes, (u64)n * bytes);
		if (module->history->replay(other, copy, n, i, near[2 * (i + n - 1)], near[2 * i + 1]))
			exit(7);
		free(copy);
		i += n;
	}
	for (u32 o = 0; one && o < module->objects; o++) {
		struct saved a = { .object = &module->object[o] }, b = a;

		if (!compared[o] || !module->object[o].save)
			continue;
		if (module->object[o].save(one, keep, &a) || module->object[o].save(other, keep, &b))
			exit(8);
		if (!differs && (a.length != b.length || (a.length && memcmp(a.bytes, b.bytes, a.length))))
			differs = o + 1;
		free(a.bytes);
		free(b.bytes);
	}
	give(&rows, 4);
	give(&differs, 4);
	for (u32 i = 0; i < head[0]; i++) {
		u32 length = (u32)(packet[i].end - packet[i].data);

		give(&packet[i].fate, 4);
		give(&packet[i].out, 4);
		give(&length, 4);
		give(packet[i].data, length);
		free(packet[i].floor);
	}
	if (one) {
		module->destroy(one);
		module->destroy(other);
	}
	for (u32 i = 0; i < module->objects; i++)
		free(initial[i]);
	free(initial);
	free(compared);
	free(one);
	free(other);
	free(packet);
	free(row);
	free(all);
	free(near);
	return 0;
}
