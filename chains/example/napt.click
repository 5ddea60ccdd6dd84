// The first function of the example, alone: TCP leaves behind the NAPT, UDP goes on.
FromDevice(inside)
  -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader
  -> route :: StaticIPLookup(192.168.0.0/24 0, 10.1.0.0/16 1, 0.0.0.0/0 2);
route[0] -> Discard;
route[1] -> kind :: IPClassifier(udp, tcp);
route[2] -> kind;

napt :: IPRewriter(pattern 10.0.0.1 1000-9000 - - 0 0, pattern - - 10.1.1.2 - 1 1);
kind[0] -> [0] napt;
kind[1] -> [1] napt;
napt[1] -> DecIPTTL -> IPFragmenter(1500)
  -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> Queue -> ToDevice(domain1);
napt[0] -> DecIPTTL -> IPFragmenter(1500)
  -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> Queue -> ToDevice(next);
