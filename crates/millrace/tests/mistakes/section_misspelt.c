#include <millrace/nf.h>

__attribute__((section("millrace/on_paket"), used)) int handle(struct packet *p)
{
	return p->port ? DROP : FLOOD;
}
//> section_misspelt.c:3: the handler `on_paket` does not exist
//> help: there are ON_PACKET, ON_START, ON_STOP and EVERY; of a packet set ON_EXPIRY
