// A firewall with 713 entries, a router, and a NAPT.
require(library gateway.clickinc)

g :: Gateway(192.0.2.1, ACL file acl-713.rules);
FromDevice(inside) -> [0] g;
FromDevice(outside) -> [1] g;
g [0] -> Queue -> ToDevice(inside);
g [1] -> Queue -> ToDevice(outside);
