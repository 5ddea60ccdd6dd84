/* An IPsec-like tunnel: IPv4 packets between networks, sealed by ChaCha20-Poly1305 in ESP (RFC 4303, RFC 7634), with keys that are set. */
#include <millrace/nf.h>
#include <millrace/adjust.h>
#include <millrace/aead.h>
#include <millrace/set.h>

PORTS(LAN, WAN);

PARAM(ipv4_address, local, IPV4(192, 0, 2, 1));  /* this end */
PARAM(ipv4_address, remote, IPV4(192, 0, 2, 2)); /* the other end */

/* Keys of 256 bits, a word of 64 each, the first byte lowest, and the salts of RFC 7634; all zeros: none is set. */
PARAM(__u64, out0, 0);
PARAM(__u64, out1, 0);
PARAM(__u64, out2, 0);
PARAM(__u64, out3, 0);
PARAM(__u32, out_salt, 0);
PARAM(__u64, in0, 0);
PARAM(__u64, in1, 0);
PARAM(__u64, in2, 0);
PARAM(__u64, in3, 0);
PARAM(__u32, in_salt, 0);

/* One direction between two networks of 256 addresses: its index is 2^24 and the number of the network where its packets go. */
struct association {
	__u32 spi;
	__u32 port; /* at which its packets come in */
};

/* Sequence numbers: the highest, and of those that came, which of the 64 up to it (RFC 4303, 3.4.3). They do not expire, as a number must
 * not be used twice with one key. */
PACKET_SET(associations, struct association, struct { __u64 highest; __u64 seen; }, .capacity = 65536);

enum { PROTOCOL_IPV4 = 4, PROTOCOL_ESP = 50 };
enum { WINDOW = 64, LAST = 0xffffffff };

/* What stands before the packet that is carried: the outer header, ESP's, and the vector. */
struct outer {
	struct ipv4 ip;
	__be32 spi, sequence;
	__be32 vector[2];
};

enum {
	ETHERNET = sizeof(struct ethernet),
	PLAIN = ETHERNET + sizeof(struct outer), /* offset of what is encrypted */
	TRAILER = 2,
};

/* The header of an IPv4 packet without tags; NULL: it is none, or a part of one. */
MILLRACE_INLINE struct ipv4 *whole(const struct packet *p)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct ipv4 *ip;

	if (!ethernet || ethernet->type != htons(ETHERTYPE_IPV4))
		return NULL;
	ip = ipv4_at(p, ETHERNET);
	return ip && !ipv4_later_fragment(ip) && !ipv4_more_fragments(ip) ? ip : NULL;
}

SET_KEY(p, key)
{
	struct ipv4 *ip = whole(p);
	struct outer *outer;

	if (!ip)
		return 0;
	if (p->port == LAN) {
		*key = (struct association){ 1 << 24 | ntohl(ip->dst) >> 8, LAN };
		return 1;
	}
	outer = packet_at(p, ETHERNET, struct outer);
	if (!outer || ip->protocol != PROTOCOL_ESP || ipv4_header_bytes(ip) != sizeof(*ip) ||
	    ip->dst != htonl(local) || ip->src != htonl(remote))
		return 0;
	*key = (struct association){ ntohl(outer->spi), WAN };
	return 1;
}

/* Key, nonce and what is authenticated beside the packet; 0: no key is set. */
MILLRACE_INLINE _Bool cipher(__u32 port, __be32 spi, __be32 sequence, struct aead *with)
{
	__u64 key[4] = { out0, out1, out2, out3 };
	__u32 salt = out_salt;

	if (port == WAN) {
		key[0] = in0;
		key[1] = in1;
		key[2] = in2;
		key[3] = in3;
		salt = in_salt;
	}
	for (int i = 0; i < 4; i++)
		store64(with->key + 8 * i, key[i]);
	/* An association's own salt, so that all may have one key; and its vector, the sequence number. */
	store32(with->nonce, htonl(salt) ^ spi);
	store32(with->nonce + 4, 0);
	store32(with->nonce + 8, sequence);
	store32(with->additional, spi);
	store32(with->additional + 4, sequence);
	return (key[0] | key[1] | key[2] | key[3]) != 0;
}

/* The Ethernet header at `from` goes to `to`; 0: the frame ends before. */
MILLRACE_INLINE _Bool move_ethernet(const struct packet *p, __u32 from, __u32 to)
{
	struct ethernet *there = packet_at(p, from, struct ethernet), *here = packet_at(p, to, struct ethernet);

	if (!there || !here)
		return 0;
	*here = *there;
	return 1;
}

MILLRACE_INLINE void write_outer(struct outer *outer, __u32 bytes, __be32 spi, __be32 sequence)
{
	const __u8 *word = (const __u8 *)&outer->ip;

	outer->ip = (struct ipv4){ .version_ihl = 0x45, .ttl = 64, .protocol = PROTOCOL_ESP };
	outer->ip.length = htons(bytes);
	outer->ip.src = htonl(local);
	outer->ip.dst = htonl(remote);
	outer->ip.checksum = ~checksum_fold((__u64)load32(word) + load32(word + 4) + load32(word + 8) +
					    load32(word + 12) + load32(word + 16));
	outer->spi = spi;
	outer->sequence = sequence;
	outer->vector[0] = 0;
	outer->vector[1] = sequence;
}

MILLRACE_INLINE int sealed(const struct packet *p, const struct association *key, __u64 number)
{
	__be32 spi = htonl(key->spi), sequence = htonl((__u32)number);
	struct ipv4 *ip = packet_at(p, ETHERNET, struct ipv4);
	__u32 bytes, pad, end;
	struct outer *outer;
	struct aead with;
	__u8 *at;

	if (!cipher(LAN, spi, sequence, &with))
		return DROP_BECAUSE(no_key);
	if (!ip || ip->ttl < 2)
		return DROP_BECAUSE(ttl);
	ipv4_decrement_ttl(ip);
	bytes = ntohs(ip->length);
	/* So that the trailer ends at a multiple of four (RFC 4303, 2.4). */
	pad = -(bytes + TRAILER) & 3;
	if (!packet_trim(p, ETHERNET + bytes) || millrace_adjust_tail((struct packet *)p, TRAILER + AEAD_TAG) ||
	    (pad & 1 && millrace_adjust_tail((struct packet *)p, 1)) ||
	    (pad & 2 && millrace_adjust_tail((struct packet *)p, 2)) || !packet_push(p, sizeof(struct outer)))
		return DROP_BECAUSE(too_long);
	if (!move_ethernet(p, sizeof(struct outer), 0))
		return DROP_BECAUSE(too_long);
	outer = packet_at(p, ETHERNET, struct outer);
	if (!outer)
		return DROP_BECAUSE(too_long);
	write_outer(outer, sizeof(struct outer) + bytes + pad + TRAILER + AEAD_TAG, spi, sequence);
	end = PLAIN + bytes;
	for (__u32 i = 0; i < 3; i++) {
		at = packet_bytes(p, end + i, 1);
		if (i < pad && at)
			*at = i + 1;
	}
	at = packet_bytes(p, end + pad, TRAILER);
	if (!at)
		return DROP_BECAUSE(too_long);
	store16(at, pad | PROTOCOL_IPV4 << 8);
	if (aead_seal(p, PLAIN, bytes + pad + TRAILER, &with))
		return DROP_BECAUSE(too_long);
	return FORWARD(WAN);
}

/* Whether a number is new to the window: neither too old nor seen (RFC 4303, 3.4.3). */
MILLRACE_INLINE _Bool is_new(__u64 highest, __u64 seen, __u32 number)
{
	if (number > highest)
		return 1;
	return number && highest - number < WINDOW && !(seen >> (highest - number) & 1);
}

MILLRACE_INLINE void note(__u64 *highest, __u64 *seen, __u32 number)
{
	if (number > *highest) {
		__u64 by = number - *highest;

		*seen = by < WINDOW ? *seen << (by & 63) | 1 : 1;
		*highest = number;
	} else {
		*seen |= 1ull << ((*highest - number) & 63);
	}
}

/* The packet inside, if it is authentic; what it becomes is decided in `opened`. */
enum outcome { AUTHENTIC, NO_KEY, BAD_HEADER, UNAUTHENTIC };

MILLRACE_INLINE enum outcome decrypt(const struct packet *p, __u32 *bytes)
{
	struct outer *outer = packet_at(p, ETHERNET, struct outer);
	struct aead with;

	if (!outer)
		return BAD_HEADER;
	*bytes = ntohs(outer->ip.length);
	if (*bytes < sizeof(struct outer) + sizeof(struct ipv4) + TRAILER + AEAD_TAG)
		return BAD_HEADER;
	*bytes -= sizeof(struct outer) + AEAD_TAG;
	if (outer->vector[0] || outer->vector[1] != outer->sequence)
		return UNAUTHENTIC;
	if (!cipher(WAN, outer->spi, outer->sequence, &with))
		return NO_KEY;
	return aead_open(p, PLAIN, *bytes, &with) ? UNAUTHENTIC : AUTHENTIC;
}

/* What was inside becomes the frame. */
MILLRACE_INLINE int opened(const struct packet *p, __u32 bytes)
{
	__u8 *trailer = packet_bytes(p, PLAIN + bytes - TRAILER, TRAILER);
	__u32 pad;

	if (!trailer || trailer[1] != PROTOCOL_IPV4)
		return DROP_BECAUSE(bad_header);
	pad = trailer[0];
	if (bytes < sizeof(struct ipv4) + TRAILER + pad)
		return DROP_BECAUSE(bad_header);
	if (!move_ethernet(p, 0, sizeof(struct outer)) || !packet_pull(p, sizeof(struct outer)) ||
	    !packet_trim(p, ETHERNET + bytes - TRAILER - pad))
		return DROP_BECAUSE(bad_header);
	return FORWARD(LAN);
}

MILLRACE_INLINE int refused(enum outcome outcome)
{
	return outcome == NO_KEY ? DROP_BECAUSE(no_key) :
	       outcome == BAD_HEADER ? DROP_BECAUSE(bad_header) :
				       DROP_BECAUSE(not_authentic);
}

MILLRACE_INLINE __u32 number_of(const struct packet *p)
{
	struct outer *outer = packet_at(p, ETHERNET, struct outer);

	return outer ? ntohl(outer->sequence) : 0;
}

ON_FIRST_PACKET(p, key)
{
	millrace_set_state fresh = {};
	enum outcome outcome;
	__u32 bytes, number;

	if (key->port == LAN) {
		fresh.highest = 1;
		return set_open(&associations, key, &fresh) ? sealed(p, key, 1) : DROP_BECAUSE(table_full);
	}
	number = number_of(p);
	if (!number)
		return DROP_BECAUSE(replayed);
	outcome = decrypt(p, &bytes);
	if (outcome != AUTHENTIC)
		return refused(outcome);
	note(&fresh.highest, &fresh.seen, number);
	return set_open(&associations, key, &fresh) ? opened(p, bytes) : DROP_BECAUSE(table_full);
}

ON_PACKET(p, key, association)
{
	enum outcome outcome;
	__u32 bytes, number;

	if (key->port == LAN) {
		if (association->highest == LAST)
			return DROP_BECAUSE(exhausted);
		return sealed(p, key, ++association->highest);
	}
	number = number_of(p);
	if (!is_new(association->highest, association->seen, number))
		return DROP_BECAUSE(replayed);
	outcome = decrypt(p, &bytes);
	if (outcome != AUTHENTIC)
		return refused(outcome);
	note(&association->highest, &association->seen, number);
	return opened(p, bytes);
}

ON_ORPHAN(p)
{
	return p->port == WAN && whole(p) ? DROP_BECAUSE(not_sealed) : FORWARD(peer(p));
}
