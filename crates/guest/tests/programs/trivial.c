/* The least that a guest can do with a packet: looks at its first byte. `grow` keeps 16 KiB for each besides, as a
 * program does that remembers what it sees.
 */
#include <stdlib.h>
#include <string.h>

#include "port.h"

__attribute__((weak)) struct mr_guest_packet *millrace_receive(int *ended);
static volatile uint64_t sum;

int main(int count, char **words)
{
    int grow = count > 1 && !strcmp(words[1], "grow");
    int ended = 0;

    while (!ended) {
        struct mr_guest_packet *packet = millrace_receive(&ended);

        if (!packet)
            continue;
        sum += packet->data[0];
        if (grow) {
            char *volatile block = malloc(16384);

            memset(block, 1, 16384);
        }
    }
    return 0;
}
