// The third function of the example, alone.
FromDevice(firewall)
  -> Strip(14) -> MarkIPHeader -> DecIPTTL -> IPFragmenter(1500)
  -> [0] lb :: IPRewriter(servers)
  -> EtherEncap(0x0800, 02:00:00:00:00:05, 02:00:00:00:00:06) -> Queue -> ToDevice(domain0);
servers :: RoundRobinIPMapper(- - 10.0.1.1 - 0 0, - - 10.0.1.2 - 0 0);
