# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_shortline_global_optspecs
    string join \n h/help V/version
end

function __fish_shortline_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_shortline_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_shortline_using_subcommand
    set -l cmd (__fish_shortline_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c shortline -n "__fish_shortline_needs_command" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_needs_command" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "serve" -d 'Serve the files below a folder'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "load" -d 'Send requests of a trace or a made-up workload to a server and report response times'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "uplink" -d 'Install, remove or show the kernel\'s priority bands on an interface'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "lab" -d 'Compare servers and policies in experiments'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "sim" -d 'Simulate what policies would do with a trace or with random arrivals'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "model" -d 'Compute what theory expects of a queue'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "gate" -d 'Let a database or an application do the shortest requests first: a gate in front of it'
complete -c shortline -n "__fish_shortline_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l listen -d 'Take connections at this address; may be given again [default: 0.0.0.0:8080]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l tls-cert -d 'Speak TLS with this certificate chain (PEM); offers HTTP/2 and HTTP/1.1' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l tls-key -d 'The certificate\'s key (PEM)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l config -d 'Read options from this TOML file; flags override it, SIGHUP reads it again' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l uplink -d 'The uplink\'s rate, such as 100mbit: responses leave just as fast as it drains them. `auto` to have it found out while serving; `off` for no scheduling [default: auto]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l uplink-rate-min -d 'What a rate that is found out never falls below (auto) [default: 100kbit]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l policy -d 'Who is served first: fair, fifo, sjf, psjf, srpt, bands (also bands:1KB,5KB or, learnt, bands:6), quickfix (also quickfix:2KB), swift, fcf, srrt, stert, las, fsp or shares (each client its fair share, inside it the shortest first) [default: shares]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l aging -d 'Give an eighth of the uplink to responses that have waited X times their expected service' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l growing -d 'Let a response\'s priority grow with its age, to the highest once it has waited X times the service it needs; in place of --aging' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l link-mode -d 'How the kernel\'s queue is kept short: auto, paced, slots or off; or ordered by the kernel: bands' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l slots -d 'Responses that may hold unacknowledged bytes in the kernel; by itself it means link mode slots [default: 2]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l control-band -d 'Give SYN-ACKs and handshakes a band of their own above all (bands) [default: true]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l quantum -d 'Body bytes of one grant [default: slots 14480; paced one segment, from 20mbit on three; bands 8192]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l jobs-max -d 'Responses that may wait at once; one more is refused [default: 100000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l burst -d 'What a client may get in a row before the rest waits behind clients that ask for less (policy shares) [default: 128KiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l uplink-loopback -d 'Schedule clients on the loopback interface too' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l uplink-device -d 'The uplink\'s interface [default: the one that owns the address clients connect to; bands: the only one whose qdisc has bands]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l uplink-packet-header -d 'Bytes that RATE counts per packet beside its IP bytes [default: 14]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l allow-system-root -d 'Serve a folder of the system, such as / or /etc, if it is the one that was named [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l index -d 'Names tried in a folder, first match wins [default: index.html]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l listing -d 'List folders that have no index file [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l listing-entries-max -d 'Names listed of one folder at most [default: 2000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l precompressed -d 'Offer .zst, .br and .gz siblings [default: true]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l cache-file-size-max -d 'Files up to this size are kept in memory [default: 1MiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l cache-size-max -d 'All files kept in memory together [default: 128MiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l cache-files-max -d 'Files kept in memory at most [default: 32768]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l cache-open-files-max -d 'Larger files kept open, and files in memory that the kernel has a copy of, at most [default: 256]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l trusted-proxy -d 'Believe these networks whom they ask for, as proxies in front of this server do; may be given again' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l client-header -d 'The field in which they say it: one such as X-Forwarded-For, Forwarded or X-Real-IP [default: X-Forwarded-For]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l client-weight -d 'Give each client in a network N shares instead of one; may be given again, the first that fits counts' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l users-per-address -d 'Give the users behind one address as many shares as there are, N at most: told apart by their TLS sessions. Whoever pretends to be many has as many [default: 1]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l user-cookie -d 'Tell them apart by this cookie where a request has it' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l admin -d 'Tell /metrics, /status and /healthz at this address; never scheduled, keep it private' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l admin-connections-max -d 'Open connections to it [default: 64]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l admin-host -d 'Answer requests that ask for it by this name, beside IP addresses and localhost; may be given again' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l access-log -d 'Log each response to this file, or to standard output: Combined Log Format and times' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l access-log-lines-max -d 'Lines that may wait for the disk; further ones are dropped and counted [default: 8192]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l connections-max -d 'Open connections in all; further ones wait in the kernel [default: 20000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l connections-per-address-max -d 'Open connections of one address; further ones are closed [default: 4096]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l header-size-max -d 'A request\'s head, at least 8KiB [default: 8KiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l header-fields-max -d 'Header fields of a request [default: 100]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l header-time-max -d 'Time for a request\'s head, and for a TLS handshake [default: 20s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l idle-time-max -d 'Time a connection may stay open without a request [default: 60s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l stall-time-max -d 'Time a response may stand still because its client takes nothing [default: 60s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l streams-max -d 'HTTP/2 streams of one connection at a time [default: 128]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l disk-reads-max -d 'Files read from disk at the same time [default: 8]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -l drain -d 'Time that responses under way have left after SIGTERM [default: 30s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand serve" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand serve" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand load" -l target -d 'The server: `http://HOST[:PORT]` or `https://HOST[:PORT]`' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l trace -d 'What to request and when: CSV lines `seconds,path,bytes` (header optional), a log in Common or Combined Log Format, or World Cup 98 binary records, packed with gzip or not, told apart by content; - is standard input. Lines that cannot be read are left out and counted' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand load" -l surge -d 'Request SURGE\'s files, as paper 001, 003 or 004 had them: surge-001, surge-003 (if none is named), surge-004; with --users, or with --schedule and --uplink' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l twin -d 'Request files like those of a log of paper 000: world-cup or nasa; with --schedule and --uplink' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l write-site -d 'Write the files of --surge or --twin below this folder for a server to serve, and request nothing' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand load" -l users -d 'Closed loop: so many users of SURGE\'s, each of whom fetches a page, rests, and fetches the next. Over two connections at a time; over one that is kept with --requests-per-connection above 1' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l schedule -d 'The load over time, 1 being the whole uplink: w1 to w10 (Table I of paper 000), 1.4 (all the time), or 25s@0.2,25s@1.2 (in turn). A trace\'s times are scaled to it' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l uplink -d 'The uplink\'s rate: what a load of 1 is, in bytes on the wire, and what the slowdown refers to. Without it slowdown is over the least time measured for a size or larger' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l speed -d 'Arrivals come this many times as fast as in the trace' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l seconds -d 'Leave out requests that would start later than this [default: of a trace none, else after 100 s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l seed -d 'Seed of what is made up [default: 1]. With a trace that has whole seconds only (logs, World Cup): spread the arrivals of a second at random, without it evenly' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l out -d 'Write a line per request: at,path,size,received,ok,tries,lag,connect,first_byte, response_time,error; seconds from the intended start; with --source also source. - is standard output, the summary then goes to standard error' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand load" -l abort-after -d 'Give up a try after this time' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l retries -d 'Try a given-up request again up to this many times' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l requests-per-connection -d 'Requests a connection serves; an idle one with uses left is taken before a new one is opened [default: 1, with --http2 no limit]' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l connections -d 'HTTP/2 connections that share the streams; more are opened only when all have as many as the server allows [default: 6]' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l source -d 'Come from these addresses of this machine, all alike or by shares (10.0.0.1=3,10.0.0.2); they share no connections' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l part -d 'Make only part K of N of the requests, or be as many of the users, as one of N processes that together make them all' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l tls-ca -d 'Trust servers whose certificate is signed by one in this PEM file' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand load" -l in-flight-max -d 'Requests in flight at most; at the limit they start late, which makes the run void (exit code 3) [default: 16000, or what `ulimit -n` allows]' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l drain -d 'After the last start wait this long for what is outstanding; the rest counts as failed' -r
complete -c shortline -n "__fish_shortline_using_subcommand load" -l open -d 'Open loop: requests leave whatever the server does (always but with --users)'
complete -c shortline -n "__fish_shortline_using_subcommand load" -l critical-rate -d 'Measure the rate of arrivals from which on not all is served, which is a load of 1: for --surge or --twin; each rate tried takes --seconds (30) [003, 4.2.3]'
complete -c shortline -n "__fish_shortline_using_subcommand load" -l http2 -d 'Speak HTTP/2: by prior knowledge, over TLS by ALPN'
complete -c shortline -n "__fish_shortline_using_subcommand load" -l tls-insecure -d 'Trust any certificate'
complete -c shortline -n "__fish_shortline_using_subcommand load" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand load" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -f -a "install" -d 'Put a qdisc with priority bands at the interface\'s root'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -f -a "remove" -d 'Take away what `install` made, and put back what was there'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -f -a "show" -d 'Print the bands: what SO_PRIORITY means each, and what went through them'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and not __fish_seen_subcommand_from install remove show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -l dev -d 'The interface' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -l rate -d 'The uplink\'s rate, such as 100mbit; not needed where the interface itself is the bottleneck' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -l bands -d 'How many bands, the first for control packets [default: as many as the qdisc can have]' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -l kind -d 'Which qdisc: prio (2 to 16 bands), htb (2 to 8, needs a rate), pfifo_fast (3) or fq (3) [default: the first of these that the kernel has]' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -l replace -d 'Take the place of a qdisc that someone configured; `remove` puts it back'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from install" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from remove" -l dev -d 'The interface' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from remove" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from show" -l dev -d 'The interface' -r
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from help" -f -a "install" -d 'Put a qdisc with priority bands at the interface\'s root'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Take away what `install` made, and put back what was there'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print the bands: what SO_PRIORITY means each, and what went through them'
complete -c shortline -n "__fish_shortline_using_subcommand uplink; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shortline -n "__fish_shortline_using_subcommand lab" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l trace -d 'Trace of the requests: CSV `seconds,path,bytes`, a log in Common or Combined Log Format, or World Cup 98 records, any of them packed with gzip or not; - is standard input. Lines that cannot be read are left out and counted' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l workload -d 'Requests made up: w1 to w10 (Table I of paper 000), 1.4 (that load all the time) or 25s@0.2,25s@1.2, on a site like the World Cup\'s or another, as in nasa:w1; sites: world-cup, nasa, surge-001, surge-003, surge-004' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l dist -d 'Sizes in bytes on the link: exp:MEAN, bp:LOW,HIGH,ALPHA (Bounded Pareto), det:SIZE, weibull:SHAPE,MEAN, uniform:LOW,HIGH, lognormal-pareto:MU,SIGMA,CUT,HIGH,ALPHA, surge-001 (paper 001, Table 1), world-cup (paper 000, 2.1), or trace:F for those of a trace; with --load, --schedule or --workload' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l load -d 'Steady load, above 0 and below 1' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l schedule -d 'Load that alternates: seconds of low and of high load, then the loads' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l seconds -d 'How long a workload or schedule lasts, in seconds [default: 100]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l jobs -d 'Jobs to count in each replication of a steady load, after the warm-up [default: 500000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l preload -d 'Jobs in the system at the start, before any arrives' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l arrivals-c2 -d 'C² (squared coefficient of variation) of the times between arrivals; 1 is Poisson' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l rate -d 'Rate of the link, such as 10mbit' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l policy -d 'Policies to compare, separated by commas: srpt (the optimum), fair, fifo, sjf, psjf, bands (or bands:CUTOFF,... or bands:N), quickfix (or quickfix:SIZE), las, fsp, shares; by round trip time, with --clients: swift, fcf, srrt, stert' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l aging -d 'Overdue jobs first: X times its service after its arrival a job is overdue' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l growing -d 'Priority grows with age: after X times its service a job is as urgent as can be' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l servers -d 'How many servers of that rate there are; a job is on one at most; fsp goes with one only' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l backend-capacity -d 'A gate in front, which admits so much estimated service at once (a time, auto or off) to servers that share; policies fifo, sjf (with --aging), and fair for no gate' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l backend-thrash -d 'Beyond KNEE jobs at once each further one costs the share FALL of the throughput, such as 20:0.02' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l clients -d 'Classes of clients by rate, round trip time and share, such as 56kbit/200ms*0.3,10mbit/20ms*0.7' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l users -d 'Who asks, each user as often: so many, and as how many clients if some share an address, such as 20,100/1 [default: each request is a client of its own]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l greedy -d 'A client beside the users that always waits for so many responses of that size, such as 64*1KB' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l burst -d 'What a client may get in a row before it stands back (policy shares); 0: nobody does' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l start-delay -d 'Time from an arrival until its service can begin' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l setup -d 'Work of every job beside its bytes' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l estimate-sigma -d 'Policies see size estimates with log-normal error: size * exp(SIGMA Z)' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l abort-after -d 'Users give up after this time, and ask again' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l retries -d 'How often a user asks again' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l quantum -d 'How long a turn is where jobs take turns (bands, quickfix)' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l seed -d 'Seed of what is random [default: 1; a trace with whole seconds only has the requests of a second spread evenly over it unless a seed is given]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l warmup -d 'Jobs at the start that are not counted [default: a tenth of --jobs and all of --preload for a steady load, else 0]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l replications -d 'Runs with other random numbers each, on all cores [default: 4 with --dist, else 1]' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l confidence -d 'Confidence of the intervals' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l jobs-in-system-max -d 'The most jobs in the system at once' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l csv -d 'Write means, means by size, and the number in the system over time as CSV, to standard output if F is - (the table then goes to standard error)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l plot -d 'Draw the results, as SVG or as a page by the file\'s ending, as SVG to standard output if F is - (the table then goes to standard error)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l wire-segment -d 'Bytes of body in a full packet' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l wire-per-packet -d 'Bytes the link carries for each packet of a response beside its body' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l wire-per-request -d 'Bytes the link carries for each request beside its body\'s packets: handshake, acknowledgements, head' -r
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l no-stretch -d 'Leave out the starvation stretch against processor sharing, which takes time'
complete -c shortline -n "__fish_shortline_using_subcommand sim" -l json -d 'Print JSON, times in seconds'
complete -c shortline -n "__fish_shortline_using_subcommand sim" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand sim" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand model" -l dist -d 'Sizes of the jobs: exp:MEAN, bp:LOW,HIGH,ALPHA (Bounded Pareto), det:SIZE, weibull:SHAPE,MEAN, uniform:LOW,HIGH, lognormal-pareto:MU,SIGMA,CUT,HIGH,ALPHA, surge-001 (paper 001, Table 1), world-cup (paper 000, 2.1); may be given more than once [default for a workload: responses like those of the World Cup 98 site]' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l load -d 'Loads, above 0 and below 1, separated by commas' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l schedule -d 'A load that alternates for ever: seconds of low load, of high load, the loads' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l workload -d 'The alternating load of paper 000, Table I: w1 to w10' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l rate -d 'Rate of the link, such as 10mbit, of a schedule or workload, whose sizes are bytes' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l policy -d 'Policies to compare, separated by commas: srpt, psjf, sjf, las, fair, fifo; under a schedule or workload srpt and fair only' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l plot -d 'Draw slowdown by size, or, of several loads, the means by load, as SVG or as a page by the file\'s ending, as SVG to standard output if F is - (the table then goes to standard error)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand model" -l simulate -d 'Simulate so many jobs of each queue, too, and show what they met beside the formula' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l seed -d 'Seed of the simulation' -r
complete -c shortline -n "__fish_shortline_using_subcommand model" -l json -d 'Print JSON, times in mean service times'
complete -c shortline -n "__fish_shortline_using_subcommand model" -s h -l help -d 'Print help'
complete -c shortline -n "__fish_shortline_using_subcommand model" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l listen -d 'Take clients\' connections at this address; may be given again' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l upstream -d 'Where the backend takes them; for http also https://HOST:PORT, unix:/PATH, and several apart by commas' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l monitor -d 'Ask the database as this user which statements wait for a lock there, which is no service: postgres://USER@HOST:PORT/DATABASE or mysql://USER@HOST:PORT [default: nobody asks]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l monitor-password-file -d 'The first line of this file is that user\'s password' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l tls-cert -d 'Speak TLS to clients that ask for it, with this certificate chain (PEM)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l tls-key -d 'The certificate\'s key (PEM)' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l tls-required -d 'Turn clients without TLS away [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l upstream-tls -d 'Whether the backend is spoken to with TLS, and how far its certificate is checked: follow, with TLS for clients that have it; disable, prefer, require, or verify-full by --upstream-ca [default: follow]' -r -f -a "follow\t'With TLS for clients that have it, if the backend has it, and without for the others; its certificate is not checked'
disable\t'Without TLS'
prefer\t'With TLS if the backend has it; its certificate is not checked'
require\t'With TLS or not at all; its certificate is not checked'
verify-full\t'With TLS, a certificate that the authorities signed, and the name of the backend in it'"
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l upstream-ca -d 'The authorities that sign the backend\'s certificate (PEM), for verify-full; for http, of an https:// upstream [default there: those of the system]' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l policy -d 'Who goes first of those that wait: fifo or sjf, shortest estimate first [default: sjf]' -r -f -a "fifo\t'In order of arrival'
sjf\t'Shortest estimate first'"
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l aging -d 'Let a shorter request pass others only if that pushes none of them beyond X times its expected service (sjf)' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l oldest-share -d 'Let whoever has waited longest have so much of the work (sjf): 0 for the shortest first, whoever starves [default: 10%]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l capacity -d 'How much may run at once: a sum of estimated service times, such as 400ms; auto, what lets the backend do most; calibrate, which searches for that once under the load that runs, and tells it; or off, for everything [default: auto]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l trial-time -d 'How long calibrate tries each capacity at least [default: 5s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l queue-max -d 'Requests that may wait at once; one more is refused [default: 10000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l wait-max -d 'Time a request may wait before it is refused [default: 2min]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l shed -d 'Refuse a request at once that is expected to wait for longer [default: wait nevertheless]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l stall-max -d 'Let the next request in if nothing has started or ended for so long, for what runs may wait for it; 0s for never [default: 10s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l dry-run -d 'Admit everything at once, and only count what would have waited [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l types-from -d 'What tells the type of a statement that no rule names, the first that knows something: tag, application-name, statement [default: tag,statement]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l tags-from -d 'Whose tags count, of rules and of types-from: networks of clients\' addresses, user:NAME, or any [default: nobody\'s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l types-max -d 'Types told apart; the rare share one [default: 1000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l estimator -d 'How a type\'s service time comes from its last requests: median-of-means, which outliers do not move, or moving-average [default: median-of-means]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l estimates -d 'Keep what was learnt in this file, over restarts' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l estimates-fixed -d 'Take the estimates of that file as they are: what has run since changes none of them, and the file is not written [default: false]' -r -f -a "true\t''
false\t''"
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l admin -d 'Tell a page, /metrics and /status at this address; never queued, keep it private' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l admin-connections-max -d 'Open connections to it [default: 64]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l admin-host -d 'Answer requests that ask for it by this name, beside IP addresses and localhost; may be given again' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l metrics-types-max -d 'Types of requests that /metrics tells apart, those with most work; the rest are one [default: 50]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l admin-database -d 'The database whose connections get SHOW commands of the gate instead of the backend, from this machine\'s root and the gate\'s own user; empty for none (postgres) [default: shortline]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l admin-uids -d 'Users of this machine who are answered there, too, by their numbers' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l slow-wait -d 'Log each request that has waited for longer, and tell its client in a notice' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l log-format -d 'How the log is written: text or json [default: text]' -r -f -a "text\t'For people'
json\t'An object a line'"
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l connections-max -d 'Open connections of clients; one more is told so and closed [default: 10000]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l authentication-time-max -d 'Time from a connection\'s acceptance to the end of its authentication [default: 60s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l connect-time-max -d 'Time to connect to the backend [default: 10s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l message-size-max -d 'A message of the protocol [default: 1GiB less 2 bytes]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l held-size-max -d 'What is kept of a client whose request waits; the rest stays in its socket [default: 16KiB]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l pipelined-max -d 'Answers a client may be owed before no more is taken from it [default: 1024]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l statements-max -d 'Prepared statements of a connection whose type is remembered [default: 512]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l threads -d 'Threads that relay [default: one for two processors]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l drain -d 'Time that transactions under way have left after SIGTERM [default: 30s]' -r
complete -c shortline -n "__fish_shortline_using_subcommand gate" -l config -d 'Read options from the table gate of this TOML file; flags override it' -r -F
complete -c shortline -n "__fish_shortline_using_subcommand gate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shortline -n "__fish_shortline_using_subcommand gate" -s V -l version -d 'Print version'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim model gate help" -f -a "serve" -d 'Serve the files below a folder'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim model gate help" -f -a "load" -d 'Send requests of a trace or a made-up workload to a server and report response times'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim model gate help" -f -a "uplink" -d 'Install, remove or show the kernel\'s priority bands on an interface'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim model gate help" -f -a "lab" -d 'Compare servers and policies in experiments'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim model gate help" -f -a "sim" -d 'Simulate what policies would do with a trace or with random arrivals'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim model gate help" -f -a "model" -d 'Compute what theory expects of a queue'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim model gate help" -f -a "gate" -d 'Let a database or an application do the shortest requests first: a gate in front of it'
complete -c shortline -n "__fish_shortline_using_subcommand help; and not __fish_seen_subcommand_from serve load uplink lab sim model gate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shortline -n "__fish_shortline_using_subcommand help; and __fish_seen_subcommand_from uplink" -f -a "install" -d 'Put a qdisc with priority bands at the interface\'s root'
complete -c shortline -n "__fish_shortline_using_subcommand help; and __fish_seen_subcommand_from uplink" -f -a "remove" -d 'Take away what `install` made, and put back what was there'
complete -c shortline -n "__fish_shortline_using_subcommand help; and __fish_seen_subcommand_from uplink" -f -a "show" -d 'Print the bands: what SO_PRIORITY means each, and what went through them'
