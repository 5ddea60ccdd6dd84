// The second function of the example, alone.
FromDevice(napt)
  -> Strip(14) -> MarkIPHeader -> DecIPTTL -> IPFragmenter(1500)
  -> fw :: IPFilter(allow src host 10.0.0.1 && udp dst port 1234, drop all)
  -> EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04) -> Queue -> ToDevice(balancer);
