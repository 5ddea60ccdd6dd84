// A firewall that lets some services in and all out, and a router behind it.
require(library ../routers/router.clickinc)

out :: IPFilter(deny src net != 10.0.0.0/16, deny dst port 25 or 137 or 139 or 445, allow all);
in :: IPFilter(allow tcp && dst host 10.0.0.80 && (dst port 80 or 443),
               allow udp && dst host 10.0.0.53 && dst port 53,
               allow tcp opt ack, allow icmp type echo-reply, deny all);
r :: Router(MAC 02:00:00:00:01:01);

FromDevice(inside) -> MarkIPHeader(14) -> out -> [0] r;
FromDevice(outside) -> MarkIPHeader(14) -> in -> [1] r;
r [0] -> Queue -> ToDevice(inside);
r [1] -> Queue -> ToDevice(outside);
