/* A load balancer: flows from the WAN keep to one of the backends that the LAN announces. */
#include <millrace/nf.h>
#include <millrace/rewrite.h>

PORTS(LAN, WAN);

#define PLACES 8 /* a power of two */

struct backend {
	__be32 address; /* 0: none */
	__u32 zero;
};
VECTOR(backends, struct backend, .capacity = PLACES);

struct assignment {
	__be32 backend;
	__u32 zero;
};
MAP(flows, struct flow4, struct assignment, .capacity = 65536, .expire_after = SECONDS(60));

/* Hosts whose address ends alike take one place; the first has it until another one sends. */
MILLRACE_INLINE int from_lan(const struct flow4 *f)
{
	struct backend *backend = vector_at(&backends, ntohl(f->src) % PLACES);

	if (backend && backend->address != f->src)
		backend->address = f->src;
	return FORWARD(WAN);
}

MILLRACE_INLINE int from_wan(struct flow4 *f, struct flow4_headers *headers)
{
	struct assignment *assignment = map_refresh(&flows, f), fresh = {};
	struct backend *backend;

	if (!assignment) {
		backend = vector_at(&backends, ntohs(f->sport ^ f->dport) % PLACES);
		if (!backend || !backend->address)
			return DROP_BECAUSE(no_backend);
		fresh.backend = backend->address;
		assignment = map_put(&flows, f, &fresh);
		if (!assignment)
			return DROP_BECAUSE(table_full);
	}
	rewrite_destination(headers, (struct endpoint){ assignment->backend, f->dport });
	return FORWARD(LAN);
}

ON_PACKET(p)
{
	struct flow4_headers headers;
	struct flow4 f;

	if (packet_find_flow4(p, &f, &headers) != FLOW_OWN)
		return FORWARD(peer(p));
	return p->port == LAN ? from_lan(&f) : from_wan(&f, &headers);
}
