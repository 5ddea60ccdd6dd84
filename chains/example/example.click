// The paper's example (its figure 5): a NAPT, a firewall for UDP behind it, and a load balancer behind that. TCP leaves behind the NAPT.
FromDevice(inside)
  -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader
  -> route :: StaticIPLookup(192.168.0.0/24 0, 10.1.0.0/16 1, 0.0.0.0/0 2);
route[0] -> Discard;
route[1] -> kind :: IPClassifier(udp, tcp);
route[2] -> kind;

// NF1, NAPT
napt :: IPRewriter(pattern 10.0.0.1 1000-9000 - - 0 0, pattern - - 10.1.1.2 - 1 1);
kind[0] -> [0] napt;
kind[1] -> [1] napt;
napt[1] -> DecIPTTL -> IPFragmenter(1500)
  -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> Queue -> ToDevice(domain1);
napt[0] -> DecIPTTL -> IPFragmenter(1500)
  -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02)
// NF2, firewall
  -> Strip(14) -> MarkIPHeader -> DecIPTTL -> IPFragmenter(1500)
  -> fw :: IPFilter(allow src host 10.0.0.1 && udp dst port 1234, drop all)
  -> EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04)
// NF3, load balancer
  -> Strip(14) -> MarkIPHeader -> DecIPTTL -> IPFragmenter(1500)
  -> [0] lb :: IPRewriter(servers)
  -> EtherEncap(0x0800, 02:00:00:00:00:05, 02:00:00:00:00:06) -> Queue -> ToDevice(domain0);
servers :: RoundRobinIPMapper(- - 10.0.1.1 - 0 0, - - 10.0.1.2 - 0 0);
