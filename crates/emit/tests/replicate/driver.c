/* Runs packets on one replica with their rows, and the rows alone on others: on the second in bursts, on the third row by
 * row. A fourth has some of the packets itself, among the rows of others, like any replica of a running group.
 *
 * In: u32 packets, u32 from and u32 bits of rows that are cleared for the second replica (0: none); per object u32 whether
 * it is compared, u32 length of its initial value, bytes; per packet u32 program, u32 port, u64 time, u32 length, u32 the
 * byte that changes behind its row (0: none), bytes. Out: u32 rows, three times u32 first object that differs between
 * the first and the second, the third, the fourth, from 1 (0xffff: none, but what became of a packet); per packet
 * u32 fate, u32 out, u32 length, bytes. Each packet and each burst of rows has a memory of exactly its length.
 */
#include "../support/host.h"

/* How many come in the `i`th burst of at most `most`. */
static u32 drawn(u32 i, u32 most)
{
	static const u32 some[] = { 1, 33, 2, 5, 32, 3, 64, 1, 4, 100, 31, 7 };
	u32 n = some[i % 12];

	return n < most ? n : most;
}

static void replay(const struct mr_history *h, int passes, struct mr_instance *self, const u8 *rows, u32 n, u64 number,
		   u64 time, u64 ingress)
{
	u8 *copy = must(malloc((u64)n * h->bytes));

	memcpy(copy, rows, (u64)n * h->bytes);
	if ((passes ? h->replay : h->replay_plain)(self, copy, n, number, time, ingress))
		exit(7);
	free(copy);
}

/* Some of the packets, in groups or singly, among the rows of others. `row_of` has a packet's row from 0, or -1. */
static u32 mixed(const struct mr_history *h, struct mr_instance *self, u32 n, struct mr_packet *copies,
		 const struct mr_packet *first, const u32 *program, const s64 *row_of, const u8 *rows)
{
	u32 differs = 0, i = 0;
	u64 applied = 0;

	for (u32 turn = 0; i < n; turn++) {
		u32 most = drawn(turn * 5, n - i), count = 0, of = 0, from = i;
		struct mr_packet **packets = must(malloc(most * sizeof(*packets)));
		const u8 **own = must(malloc(most * sizeof(*own)));
		u64 number = applied;

		for (; i < from + most; i++) {
			/* One in three, or some in succession. */
			int mine = turn % 2 ? (i - from) % 3 == turn / 2 % 3 : (i - from) / 8 % 2 == turn / 2 % 2;

			if (row_of[i] < 0 && !mine)
				continue;
			if (mine && !of)
				of = program[i] + 1;
			if (mine && program[i] + 1 != of)
				break;
			packets[count] = mine ? &copies[i] : NULL;
			own[count] = row_of[i] < 0 ? NULL : must(malloc(h->bytes));
			if (own[count])
				memcpy((u8 *)own[count], rows + (u64)row_of[i] * h->bytes, h->bytes);
			applied += own[count] != NULL;
			count++;
		}
		if (h->burst(self, of ? of - 1 : 0, packets, own, count, number, first[from].time, first[i - 1].number))
			exit(9);
		for (u32 j = 0; j < count; j++) {
			const struct mr_packet *p = packets[j], *q;
			u64 length;

			free((u8 *)own[j]);
			if (!p)
				continue;
			q = &first[p - copies];
			length = (u64)(q->end - q->data);
			differs |= p->fate != q->fate || p->out != q->out || (u64)(p->end - p->data) != length ||
				   (length && memcmp(p->data, q->data, length));
		}
		free(packets);
		free(own);
	}
	return differs;
}

int main(int argc, char **argv)
{
	struct mr_instance *one = NULL, *other = NULL, *plain = NULL, *group = NULL;
	u32 head[3], *program, differs[3] = { 0 }, became = 0, rows = 0, bytes;
	u8 *row, *all;
	u64 *near; /* time and number of each row's packet */
	s64 *row_of;
	struct mr_packet *packet, *copy;

	load(argc, argv);
	bytes = module->history->bytes;
	take(head, sizeof(head));
	take_objects(1);
	row = must(malloc(bytes));
	all = must(malloc((u64)bytes * head[0] + 1));
	packet = calloc(head[0] + 1, sizeof(*packet));
	copy = calloc(head[0] + 1, sizeof(*copy));
	program = calloc(head[0] + 1, sizeof(*program));
	row_of = calloc(head[0] + 1, sizeof(*row_of));
	near = calloc(2 * (u64)head[0] + 2, sizeof(*near));
	for (u32 i = 0; i < head[0]; i++) {
		struct mr_packet *p = &packet[i];
		u32 changed, length;
		int has;

		take(&program[i], 4);
		take_packet(p, i, &changed);
		if (!one) {
			one = started(p->time);
			other = started(p->time);
			plain = started(p->time);
			group = started(p->time);
		}
		has = module->history->extract(one, program[i], p, row) != 0;
		if (has && changed)
			p->data[changed] ^= 0xff;
		length = (u32)(p->end - p->data);
		copy[i] = *p;
		copy[i].data = copy[i].meta = copy[i].floor = must(malloc(length));
		copy[i].end = copy[i].ceiling = copy[i].data + length;
		memcpy(copy[i].data, p->data, length);
		row_of[i] = has ? (s64)rows : -1;
		if (!has) {
			module->history->process(one, program[i], p, NULL, 0);
			continue;
		}
		memcpy(all + (u64)rows * bytes, row, bytes);
		near[2 * rows] = p->time;
		near[2 * rows + 1] = p->number;
		module->history->process(one, program[i], p, row, rows);
		rows++;
	}
	if (one)
		became = mixed(module->history, group, head[0], copy, packet, program, row_of, all);
	for (u32 i = 0; i < rows; i++)
		for (u32 b = head[1]; b < head[1] + head[2]; b++)
			all[(u64)i * bytes + b / 8] &= (u8)~(1u << b % 8);
	for (u32 i = 0, turn = 0; one && i < rows; turn++) {
		u32 n = drawn(turn, rows - i);

		replay(module->history, 1, other, all + (u64)i * bytes, n, i, near[2 * (i + n - 1)], near[2 * i + 1]);
		i += n;
	}
	for (u32 i = 0; one && i < rows; i++)
		replay(module->history, 0, plain, all + (u64)i * bytes, 1, i, near[2 * i], near[2 * i + 1]);
	if (one) {
		differs[0] = apart(one, other);
		differs[1] = apart(one, plain);
		differs[2] = apart(one, group);
		if (became && !differs[2])
			differs[2] = 0xffff;
	}
	give(&rows, 4);
	give(differs, sizeof(differs));
	for (u32 i = 0; i < head[0]; i++) {
		give_packet(&packet[i]);
		free(packet[i].floor);
		free(copy[i].floor);
	}
	end(one);
	end(other);
	end(plain);
	end(group);
	free_objects();
	free(packet);
	free(copy);
	free(program);
	free(row_of);
	free(row);
	free(all);
	free(near);
	return 0;
}
