// An IP router between four networks (RFC 1812): broadcasts and bad headers are dropped, a packet's time to live is lowered, and it
// leaves with the addresses of the next link.
elementclass Router {
  input[0] -> in :: Strip(14); input[1] -> in; in
    -> CheckIPHeader
    -> route :: StaticIPLookup(10.0.0.0/16 0, 10.1.0.0/16 1, 0.0.0.0/0 1);
  route[0] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> [0] output;
  route[1] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02) -> [1] output;
}

FromDevice(inside) -> [0] r :: Router;
FromDevice(outside) -> [1] r;
r [0] -> Queue -> ToDevice(inside);
r [1] -> Queue -> ToDevice(outside);
