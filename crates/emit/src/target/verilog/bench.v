
// Test bench: runs the packets of a sequenced capture (+capture=FILE, of `millrace sequence`) through the sequencer and
// compares what comes out with the capture, byte for byte. Words come and go with pauses, by chance from +seed=N.
module millrace_bench;
    localparam MARKS = (SLOTS + 7) / 8;
    localparam PREFIX = 34 + MARKS + SLOTS * ROW;
    localparam ROOM = 1 << 22; // bytes of the largest capture

    reg clk = 0;
    reg reset = 1;
    always #2 clk = !clk;

    reg [7:0] file [0:ROOM-1];
    integer bytes, handle, c, seed;
    reg [8*1024-1:0] name;

    reg in_valid = 0;
    wire in_ready;
    reg [8*BUS-1:0] in_data = 0;
    reg [15:0] in_length = 0;
    reg [15:0] in_port = 0;
    reg [63:0] in_time = 0;
    wire out_valid;
    reg out_ready = 0;
    wire [8*BUS-1:0] out_data;
    wire [15:0] out_bytes;
    wire out_last;
    wire [15:0] out_core;
    wire stopped;

    millrace_sequencer #(
        .BUS(BUS), .SLOTS(SLOTS), .CORES(CORES), .PERIOD(PERIOD)
    ) sequencer (
        .clk(clk), .reset(reset),
        .in_valid(in_valid), .in_ready(in_ready), .in_data(in_data),
        .in_length(in_length), .in_port(in_port), .in_time(in_time),
        .now_valid(1'b0), .now(64'd0),
        .out_valid(out_valid), .out_ready(out_ready), .out_data(out_data),
        .out_bytes(out_bytes), .out_last(out_last), .out_core(out_core),
        .stopped(stopped)
    );

    function [31:0] little(input integer at);
        little = {file[at + 3], file[at + 2], file[at + 1], file[at]};
    endfunction

    // What the sequencer saw at the last rising edge; all here happens at falling ones, so that no simulator's order matters.
    reg accepted = 0;
    reg fired = 0;
    reg [8*BUS-1:0] got;
    reg [15:0] got_bytes;
    reg got_last;
    always @(posedge clk) begin
        accepted <= in_valid && in_ready && !reset;
        fired <= out_valid && out_ready && !reset;
        got <= out_data;
        got_bytes <= out_bytes;
        got_last <= out_last;
    end

    task fail(input integer record);
        begin
            $display("FAIL: record %0d", record);
            $finish;
        end
    endtask

    // A record begins with 16 bytes of pcap's: seconds, nanoseconds, bytes here, bytes there.
    reg [8*BUS-1:0] made;
    integer feed, fed, fill, at, k;
    initial begin
        if (!$value$plusargs("capture=%s", name)) begin
            $display("FAIL: say +capture=FILE");
            $finish;
        end
        if (!$value$plusargs("seed=%d", seed))
            seed = 1;
        handle = $fopen(name, "rb");
        if (handle == 0) begin
            $display("FAIL: cannot open %0s", name);
            $finish;
        end
        bytes = 0;
        c = $fgetc(handle);
        while (c >= 0 && bytes < ROOM) begin
            file[bytes] = c;
            bytes = bytes + 1;
            c = $fgetc(handle);
        end
        $fclose(handle);
        if (bytes < 24 + 16 + 30 || little(0) != 32'ha1b23c4d || file[24 + 16 + 14] != 8'h1f) begin
            $display("FAIL: no sequenced capture");
            $finish;
        end
        if (file[24 + 16 + 15] != SLOTS || file[24 + 16 + 16] != ROW || file[24 + 16 + 18] != 0
            || {file[24 + 16 + 20], file[24 + 16 + 21]} != CORES
            || {file[24 + 16 + 22], file[24 + 16 + 23], file[24 + 16 + 24], file[24 + 16 + 25],
                file[24 + 16 + 26], file[24 + 16 + 27], file[24 + 16 + 28], file[24 + 16 + 29]} != PERIOD) begin
            $display("FAIL: another form: %0d slots, rows of %0d bytes, %0d cores; or a tag",
                     file[24 + 16 + 15], file[24 + 16 + 16], {file[24 + 16 + 20], file[24 + 16 + 21]});
            $finish;
        end
        repeat (4) @(negedge clk);
        reset = 0;
        // Each record that is no heartbeat's is a packet with its prefix.
        feed = 24 + 16 + 30;
        while (feed < bytes) begin
            at = feed + 16;
            fill = little(feed + 8);
            if (!file[at + 14][1]) begin
                fed = PREFIX;
                while (fed < fill) begin
                    while ($random(seed) & 1) @(negedge clk);
                    in_length = fill - PREFIX;
                    in_port = {file[at + 10], file[at + 11]};
                    in_time = {file[at + 26], file[at + 27], file[at + 28], file[at + 29],
                               file[at + 30], file[at + 31], file[at + 32], file[at + 33]};
                    for (k = 0; k < BUS; k = k + 1)
                        made[8*k +: 8] = fed + k < fill ? file[at + fed + k] : $random(seed);
                    in_data = made;
                    in_valid = 1;
                    @(negedge clk);
                    while (!accepted) @(negedge clk);
                    in_valid = 0;
                    fed = fed + BUS;
                end
            end
            feed = at + fill;
        end
    end

    integer want = 24 + 16 + 30;
    integer record = 2;
    integer seen = 0;
    integer compared = 0;
    integer idle = 0;
    integer j;
    integer chance = 7;
    always @(negedge clk) if (!reset) begin
        if (fired) begin
            idle = 0;
            if (want >= bytes)
                fail(record);
            for (j = 0; j < got_bytes; j = j + 1)
                if (file[want + 16 + seen + j] !== got[8*j +: 8] || seen + j >= little(want + 8)) begin
                    $display("byte %0d: expected %02x, found %02x", seen + j, file[want + 16 + seen + j],
                             got[8*j +: 8]);
                    fail(record);
                end
            seen = seen + got_bytes;
            compared = compared + got_bytes;
            if (got_last) begin
                if (seen != little(want + 8))
                    fail(record);
                want = want + 16 + seen;
                seen = 0;
                record = record + 1;
                if (want >= bytes) begin
                    $display("PASS: %0d records, %0d bytes", record - 2, compared);
                    $finish;
                end
            end
        end else
            idle = idle + 1;
        if (idle > 10000) begin
            $display("FAIL: nothing comes");
            fail(record);
        end
        out_ready = $random(chance) & 1;
    end
endmodule
