// The sequencer of state-compute replication, prefix form (docs/replication.md): numbers packets, keeps the rows of the last
// SLOTS of them, and sends each packet on with a prefix that holds these rows, to CORES cores in turn.
//
// Packets come as words of BUS bytes, the first byte in the lowest bits; all words but a packet's last are full. With the
// first word come the packet's length (bytes, as a MAC or NetFPGA's tuser tells it), its port and its time in ns. A row is
// taken from the first WINDOW bytes: the core gathers these, asks `touch` and `row` of them, and sends prefix, gathered bytes
// and the rest of the packet without a gap. So a packet takes ceil(WINDOW / BUS) + 1 cycles beside the words that it has when
// it leaves.
//
// A heartbeat is due PERIOD ns after the last row. It is sent before a packet of a later time, and without one when `now`,
// if `now_valid`, has come so far. `stopped` is set when no number is left; nothing is taken from then on.
module millrace_core #(
    parameter BUS = 64,           // bytes of a word, a power of two
    parameter WINDOW = 64,        // bytes of a packet that rows are taken from
    parameter ROW = 14,           // bytes of a row, 1 to 64
    parameter SLOTS = 16,         // rows of a prefix, 1 to 64 in the format
    parameter CORES = 2,          // 1 to 64, at most SLOTS
    parameter TIME = -1,          // offset of the 40-bit time in a row; -1: rows have none
    parameter [63:0] PERIOD = 64'h4000000000, // of heartbeats, ns
    parameter HEAD = (WINDOW + BUS - 1) / BUS
) (
    input wire clk,
    input wire reset,

    input wire in_valid,
    output wire in_ready,
    input wire [8*BUS-1:0] in_data,
    input wire [15:0] in_length,
    input wire [15:0] in_port,
    input wire [63:0] in_time,

    input wire now_valid,
    input wire [63:0] now,

    // the packet's first bytes, zeros behind its end, and what is known of it
    output reg [8*HEAD*BUS-1:0] head,
    output reg [15:0] length,
    output reg [15:0] port,
    output wire [63:0] stamp_next,
    // its row
    input wire touch,
    input wire [8*ROW-1:0] row,

    output wire out_valid,
    input wire out_ready,
    output wire [8*BUS-1:0] out_data,
    output wire [15:0] out_bytes,
    output wire out_last,
    output reg [15:0] out_core,

    output reg stopped
);
    localparam MARKS = (SLOTS + 7) / 8;
    localparam PREFIX = 34 + MARKS + SLOTS * ROW;
    localparam WHOLE = PREFIX / BUS; // words of nothing but prefix
    localparam OVER = PREFIX % BUS;  // bytes of it in the word that the packet begins in
    localparam [63:0] LAST = 64'hfffffffffffffffe;

    localparam [1:0] IDLE = 0, GATHER = 1, STEP = 2, SEND = 3;
    reg [1:0] state;

    // What step() remembers.
    reg [63:0] sequence_;
    reg [63:0] row_time;
    reg [63:0] stamp;
    reg [15:0] turn;
    reg [15:0] index; // sequence mod SLOTS
    reg [8*ROW-1:0] slot [0:SLOTS-1];
    reg [8*MARKS-1:0] marks; // heartbeats

    // The packet at hand.
    reg [63:0] time_;
    reg [15:0] gathered;
    reg [1:0] flags; // 1: it has a row, 2: a heartbeat
    reg [15:0] from; // its port, 0 for heartbeats
    reg waits;       // it comes behind the heartbeat that is being sent

    wire [64:0] due = {1'b0, row_time} + {1'b0, PERIOD};
    wire [63:0] until_ = waits ? time_ : now;
    wire beat = sequence_ != 0 && !due[64] && due[63:0] <= until_;
    wire [63:0] later = time_ > stamp ? time_ : stamp;
    wire [63:0] stamp_step = beat ? due[63:0] : later;
    assign stamp_next = later;

    // The row that is put into its slot: the time in it is the stamp's.
    wire [8*ROW-1:0] timed;
    genvar i;
    generate
        for (i = 0; i < ROW; i = i + 1) begin : rows
            if (TIME >= 0 && i >= TIME && i < TIME + 5)
                assign timed[8*i +: 8] = stamp_step[8*(4 - (i - TIME)) +: 8];
            else
                assign timed[8*i +: 8] = beat ? 8'd0 : row[8*i +: 8];
        end
    endgenerate

    // The prefix, first byte lowest.
    wire [8*PREFIX-1:0] prefix;
    assign prefix[31:0] = 32'h00524d02;
    assign prefix[47:32] = {out_core[7:0], out_core[15:8]};
    assign prefix[79:48] = 32'h01524d02;
    assign prefix[95:80] = {from[7:0], from[15:8]};
    assign prefix[111:96] = 16'hb588;
    assign prefix[119:112] = {6'b000100, flags};
    assign prefix[127:120] = SLOTS;
    assign prefix[135:128] = ROW;
    assign prefix[143:136] = index[7:0];
    generate
        for (i = 0; i < 8; i = i + 1) begin : numbers
            assign prefix[8*(18 + i) +: 8] = sequence_[8*(7 - i) +: 8];
            assign prefix[8*(26 + i) +: 8] = stamp[8*(7 - i) +: 8];
        end
        for (i = 0; i < SLOTS; i = i + 1) begin : slots
            assign prefix[8*(34 + MARKS + i*ROW) +: 8*ROW] = slot[i];
        end
    endgenerate
    assign prefix[8*34 +: 8*MARKS] = marks;

    // Its words; the bits behind it are zero.
    wire [8*BUS*(WHOLE+1)-1:0] padded = prefix;

    // What is sent.
    reg [15:0] word;
    reg [8*BUS-1:0] over; // bytes that did not fit into the word before
    wire [31:0] total = PREFIX + (flags[1] ? 0 : length);
    wire [15:0] words = (total + BUS - 1) / BUS;
    wire [15:0] packet_words = flags[1] ? 16'd0 : (length + BUS - 1) / BUS;
    wire [15:0] part = word - WHOLE; // the packet's word that goes into this one
    wire mixed = word >= WHOLE;
    wire held = part < HEAD;
    wire needed = mixed && part < packet_words;
    // Selections of whole words, at constant places: a part at a computed place would be a shifter of all of them.
    integer k;
    reg [8*BUS-1:0] prefix_word;
    reg [8*BUS-1:0] head_word;
    always @* begin
        prefix_word = 0;
        for (k = 0; k <= WHOLE; k = k + 1)
            if (word == k)
                prefix_word = padded[8*BUS*k +: 8*BUS];
        head_word = 0;
        for (k = 0; k < HEAD; k = k + 1)
            if (part == k)
                head_word = head[8*BUS*k +: 8*BUS];
    end
    wire [8*BUS-1:0] piece = !needed ? {8*BUS{1'b0}} : held ? head_word : in_data;
    wire [16*BUS-1:0] shifted = {{8*BUS{1'b0}}, piece} << (8 * OVER);
    wire [8*BUS-1:0] before_ = word <= WHOLE ? prefix_word : over;

    // The first bytes, with this word's in their place.
    reg [8*HEAD*BUS-1:0] head_next;
    always @* begin
        head_next = head;
        for (k = 0; k < HEAD * BUS; k = k + 1)
            if (gathered == k / BUS && k < length)
                head_next[8*k +: 8] = in_data[8*(k % BUS) +: 8];
    end

    assign out_valid = state == SEND && (!needed || held || in_valid);
    assign out_data = before_ | (mixed ? shifted[8*BUS-1:0] : {8*BUS{1'b0}});
    assign out_last = word + 16'd1 == words;
    assign out_bytes = out_last ? total - BUS * word : BUS;
    assign in_ready = state == GATHER || (state == SEND && needed && !held && out_ready);

    integer n;
    always @(posedge clk) begin
        if (reset) begin
            state <= IDLE;
            sequence_ <= 0;
            row_time <= 0;
            stamp <= 0;
            turn <= 0;
            index <= 0;
            marks <= 0;
            flags <= 0;
            from <= 0;
            out_core <= 0;
            waits <= 0;
            stopped <= 0;
            time_ <= 0;
            length <= 0;
            port <= 0;
            gathered <= 0;
            word <= 0;
            over <= 0;
            head <= 0;
            for (n = 0; n < SLOTS; n = n + 1)
                slot[n] <= 0;
        end else case (state)
            IDLE: if (!stopped) begin
                gathered <= 0;
                head <= 0;
                if (in_valid) begin
                    length <= in_length;
                    port <= in_port;
                    time_ <= in_time;
                    waits <= 1;
                    state <= GATHER;
                end else if (now_valid && beat)
                    state <= STEP;
            end
            GATHER: if (in_valid) begin
                head <= head_next;
                gathered <= gathered + 16'd1;
                if (gathered + 16'd1 == HEAD || (gathered + 16'd1) * BUS >= length)
                    state <= STEP;
            end
            // step() of crates/steer.
            STEP: if ((beat || touch) && sequence_ == LAST)
                stopped <= 1;
            else begin
                if (beat || touch) begin
                    sequence_ <= sequence_ + 64'd1;
                    row_time <= stamp_step;
                    slot[index] <= timed;
                    marks[index] <= beat;
                    index <= index + 16'd1 == SLOTS ? 16'd0 : index + 16'd1;
                end
                stamp <= stamp_step;
                flags <= beat ? 2'd2 : {1'b0, touch};
                from <= beat ? 16'd0 : port;
                out_core <= beat ? 16'd0 : turn;
                if (!beat)
                    turn <= turn + 16'd1 == CORES ? 16'd0 : turn + 16'd1;
                word <= 0;
                state <= SEND;
            end
            SEND: if (out_valid && out_ready) begin
                over <= shifted[16*BUS-1:8*BUS];
                word <= word + 16'd1;
                if (out_last) begin
                    word <= 0;
                    if (flags[1] && out_core + 16'd1 != CORES)
                        out_core <= out_core + 16'd1;
                    else if (flags[1] && waits)
                        state <= STEP;
                    else begin
                        waits <= 0;
                        state <= IDLE;
                    end
                end
            end
        endcase
    end
endmodule
