/* Prefixes that packets put, find and remove, and that a handler puts into a table that may be full. */
#include <millrace/nf.h>

struct to {
	__u32 port;
	__u32 weight;
};
LPM(table, __be32, struct to, .capacity = 8);
VECTOR(written, struct to, .capacity = 2);

struct request {
	__u8 what;
	__u8 bits;
	__u8 port;
	__u8 zero;
	__be32 network;
};

ON_START()
{
	struct to *first = vector_at(&written, 0);
	__be32 network = htonl(0x0a000000u);

	if (first && first->weight)
		lpm_put(&table, &network, 8, first);
}

ON_PACKET(p)
{
	struct request *request = packet_at(p, 0, struct request);
	struct to *found, given = {};
	__be32 network;

	if (!request)
		return DROP;
	network = request->network;
	given.port = request->port;
	switch (request->what & 3) {
	case 0:
		found = lpm_get(&table, &network);
		return found ? FORWARD(found->port & 3) : DROP;
	case 1:
		return lpm_put(&table, &network, request->bits, &given) ? FORWARD(1) : DROP;
	case 2:
		return lpm_delete(&table, &network, request->bits) ? FORWARD(2) : DROP;
	}
	return FORWARD(3);
}
