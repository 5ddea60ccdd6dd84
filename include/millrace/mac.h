/* Ethernet addresses as values: copies, comparisons, keys. */
#ifndef MILLRACE_MAC_H
#define MILLRACE_MAC_H

#include <millrace/ethernet.h>

/* An address as a key: six bytes, in the order of the wire. */
struct mac {
	__u16 words[3];
};

#define mac_from(from) ((struct mac){ { (from)[0], (from)[1], (from)[2] } })

/* Whether it names a group of stations, broadcast included: the I/G bit (IEEE 802, 8.2), the first
 * that is sent, is the lowest of the first byte. */
#define mac_is_group(mac) (((mac)->words[0] & 1) != 0)

#endif
