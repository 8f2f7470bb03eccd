//! The table of configuration parameters: one row each, with its doc sentence above it.
//!
//! The command line, the config file, CONFIG GET/SET/REWRITE and docs/configuration.md derive from this table
//! and from nothing else. Names, defaults, bounds and mutability are those of Redis 8.0, so that its
//! configuration files keep their meaning; exceptions say so. Names are unique, aliases included (tested).
//! A row marked `later` is accepted but its feature is still to come; take the mark off with the feature.
use super::row::{
    Group, Kind, Param, Words, choice, flags, int, memory, optional, params, row, switch, text,
};
use super::settle;

const I32: i64 = i32::MAX as i64;
const I64: i64 = i64::MAX;
const U32: i64 = u32::MAX as i64;
const SIZE: u64 = i64::MAX as u64;
const MB: u64 = 1 << 20;
const PORT_MAX: i64 = 65535;

const LOG_LEVELS: Words = &[("debug", 0), ("verbose", 1), ("notice", 2), ("warning", 3), ("nothing", 4)];
const SUPERVISORS: Words = &[("upstart", 0), ("systemd", 1), ("auto", 2), ("no", 3)];
const FACILITIES: Words = &[
    ("user", 8),
    ("local0", 128),
    ("local1", 136),
    ("local2", 144),
    ("local3", 152),
    ("local4", 160),
    ("local5", 168),
    ("local6", 176),
    ("local7", 184),
];
const EVICTIONS: Words = &[
    ("volatile-lru", 0),
    ("volatile-lfu", 1),
    ("volatile-random", 2),
    ("volatile-ttl", 3),
    ("allkeys-lru", 4),
    ("allkeys-lfu", 5),
    ("allkeys-random", 6),
    ("noeviction", 7),
];
const FSYNCS: Words = &[("everysec", 0), ("always", 1), ("no", 2)];
/// Bits: save, nosave, now, force.
const SHUTDOWNS: Words = &[
    ("default", 0),
    ("save", settle::SHUTDOWN_SAVE),
    ("nosave", settle::SHUTDOWN_NOSAVE),
    ("now", 4),
    ("force", settle::SHUTDOWN_FORCE),
];
const DISKLESS_LOADS: Words = &[("disabled", 0), ("on-empty-db", 1), ("swapdb", 2)];
const CLIENT_CERTS: Words = &[("no", 0), ("yes", 1), ("optional", 2)];
const OOM_MODES: Words = &[("no", 0), ("yes", 1), ("relative", 1), ("absolute", 2)];
const CHANNEL_DEFAULTS: Words = &[("allchannels", 1), ("resetchannels", 0)];
const SANITIZES: Words = &[("no", 0), ("yes", 1), ("clients", 2)];
const PERMISSIONS: Words = &[("no", 0), ("yes", 1), ("local", 2)];
const ENDPOINTS: Words = &[("ip", 0), ("hostname", 1), ("unknown-endpoint", 2)];
const APPLY_ERRORS: Words = &[("ignore", 0), ("panic", 1), ("panic-on-replicas", 2)];
const IO_DRIVERS: Words = &[("auto", 0), ("uring", 1), ("epoll", 2)];
const FAST_PATHS: Words = &[("auto", 0), ("on", 1), ("off", 2)];
const RDB_CHECKS: Words = &[("strict", 0), ("relaxed", 1)];

params! {
Network {
    /// TCP port that clients connect to; 0 opens none.
    PORT = int("port", "6379", 0, PORT_MAX);
    /// Addresses to listen on, at most 16; a leading `-` tolerates an address this machine lacks, `*` means every one.
    BIND = row("bind", "127.0.0.1", Kind::Addresses);
    /// Local address that outgoing connections start from; empty lets the system choose.
    BIND_SOURCE_ADDR = optional("bind-source-addr").later();
    /// Path of a unix socket to listen on as well; empty for none.
    UNIXSOCKET = optional("unixsocket").immutable();
    /// Permission bits of the unix socket in octal; 0 leaves them to the umask.
    UNIXSOCKETPERM = row("unixsocketperm", "0", Kind::Octal { max: 0o777 }).immutable();
    /// Refuse other machines while the default user has no password and no address was bound on purpose.
    PROTECTED_MODE = switch("protected-mode", "yes");
    /// Length of the queue of connections waiting to be accepted.
    TCP_BACKLOG = int("tcp-backlog", "511", 0, I32).immutable();
    /// Seconds of silence after which the system probes a connection; 0 never probes.
    TCP_KEEPALIVE = int("tcp-keepalive", "300", 0, I32);
    /// Seconds after which an idle client is disconnected; 0 never.
    TIMEOUT = int("timeout", "0", 0, I32);
    /// Mark put on listening sockets for packet filters; 0 for none.
    SOCKET_MARK_ID = int("socket-mark-id", "0", 0, U32).immutable().later();
    /// New connections accepted in one turn of the event loop.
    MAX_NEW_CONNECTIONS_PER_CYCLE = int("max-new-connections-per-cycle", "10", 1, 1000).later();
    /// New TLS connections accepted in one turn of the event loop.
    MAX_NEW_TLS_CONNECTIONS_PER_CYCLE = int("max-new-tls-connections-per-cycle", "1", 1, 1000).later();
}
General {
    /// Number of databases that SELECT can reach.
    DATABASES = int("databases", "16", 1, I32).immutable();
    /// Working directory, where data files and relative paths live.
    DIR = text("dir", ".").with(flags::PROTECTED | flags::DENY_LOADING).settle(settle::directory);
    /// File that log lines are appended to; empty means standard output.
    LOGFILE = text("logfile", "").immutable();
    /// Least level of importance a log line needs to be written.
    LOGLEVEL = choice("loglevel", "notice", LOG_LEVELS);
    /// Keep keys, values and client data out of the log.
    HIDE_USER_DATA_FROM_LOG = switch("hide-user-data-from-log", "no").later();
    /// Leave the terminal and run in the background.
    DAEMONIZE = switch("daemonize", "no").immutable().later();
    /// File that holds the process id while the server runs; empty for none.
    PIDFILE = optional("pidfile").immutable().later();
    /// Tell a supervisor when the server is ready, and which kind of supervisor that is.
    SUPERVISED = choice("supervised", "no", SUPERVISORS).immutable().later();
    /// Send log lines to syslog as well.
    SYSLOG_ENABLED = switch("syslog-enabled", "no").immutable().later();
    /// Name that syslog shows beside our lines.
    SYSLOG_IDENT = text("syslog-ident", "redis").immutable().later();
    /// Syslog facility of our lines.
    SYSLOG_FACILITY = choice("syslog-facility", "local0", FACILITIES).immutable().later();
    /// Print the logo at start even when the log is not a terminal.
    ALWAYS_SHOW_LOGO = switch("always-show-logo", "no").immutable().inert();
    /// Show the server's address and mode as the title of its process.
    SET_PROC_TITLE = switch("set-proc-title", "yes").immutable().later();
    /// Template of the process title, with variables in braces.
    PROC_TITLE_TEMPLATE = text("proc-title-template", "\"{title} {listen-addr} {server-mode}\"")
        .settle(settle::proc_title).later();
    /// Turns per second of the background chores, kept within 1 and 500.
    HZ = int("hz", "10", 0, I32).settle(settle::hz);
    /// Run the background chores more often when many clients are connected.
    DYNAMIC_HZ = switch("dynamic-hz", "yes").later();
    /// What SIGINT does: plain words of SHUTDOWN, or `default` to save only when save rules exist.
    SHUTDOWN_ON_SIGINT = row("shutdown-on-sigint", "default", Kind::Choices(SHUTDOWNS))
        .settle(settle::shutdown).later();
    /// What SIGTERM does: plain words of SHUTDOWN, or `default` to save only when save rules exist.
    SHUTDOWN_ON_SIGTERM = row("shutdown-on-sigterm", "default", Kind::Choices(SHUTDOWNS))
        .settle(settle::shutdown).later();
    /// Seconds that a shutdown waits for lagging replicas.
    SHUTDOWN_TIMEOUT = int("shutdown-timeout", "10", 0, I32).later();
    /// Write a report with a stack trace to the log when the server crashes.
    CRASH_LOG_ENABLED = switch("crash-log-enabled", "yes").later();
    /// Test the memory for faults after a crash.
    CRASH_MEMCHECK_ENABLED = switch("crash-memcheck-enabled", "yes").later();
    /// Locale whose order SORT ALPHA follows; empty takes it from the environment.
    LOCALE_COLLATE = text("locale-collate", "").later();
}
Threads {
    /// Number of shards, each one thread with its own part of the keys; 0 means one per available core (ours).
    SHARDS = int("shards", "0", 0, 1024).immutable();
    /// How threads talk to the kernel; `auto` takes io_uring where the kernel offers it (ours).
    IO_DRIVER = choice("io-driver", "auto", IO_DRIVERS).immutable();
    /// Whether a thread may read another shard's keys in place; `auto` decides by the number of shards (ours).
    CROSS_SHARD_FAST_PATH = choice("cross-shard-fast-path", "auto", FAST_PATHS);
    /// Number of I/O threads in Redis; here `shards` sets the threads.
    IO_THREADS = int("io-threads", "1", 1, 128).immutable().inert();
}
Clients {
    /// Most clients connected at once.
    MAXCLIENTS = int("maxclients", "10000", 1, U32);
    /// Bytes that one client may have sent without completing a request.
    CLIENT_QUERY_BUFFER_LIMIT = memory("client-query-buffer-limit", "1gb", MB, SIZE);
    /// Bytes of unread replies, per client class, that cut a client off: the hard limit at once, the soft one after its seconds.
    CLIENT_OUTPUT_BUFFER_LIMIT = row("client-output-buffer-limit",
        "normal 0 0 0 replica 256mb 64mb 60 pubsub 32mb 8mb 60", Kind::OutputLimits);
    /// Bytes of the longest single argument of a request.
    PROTO_MAX_BULK_LEN = memory("proto-max-bulk-len", "512mb", MB, SIZE);
    /// Bytes that all clients' buffers together may use, or a percentage of `maxmemory`; 0 sets no limit.
    MAXMEMORY_CLIENTS = row("maxmemory-clients", "0", Kind::MemoryOrPercent);
}
Memory {
    /// Bytes of memory at which keys are evicted or writes refused; 0 sets no limit.
    MAXMEMORY = memory("maxmemory", "0", 0, u64::MAX).later();
    /// Which keys make room when `maxmemory` is reached.
    MAXMEMORY_POLICY = choice("maxmemory-policy", "noeviction", EVICTIONS).later();
    /// Keys looked at for each eviction.
    MAXMEMORY_SAMPLES = int("maxmemory-samples", "5", 1, 64).later();
    /// How much delay eviction may cause before it yields, from 0 for little to 100 for any.
    MAXMEMORY_EVICTION_TENACITY = int("maxmemory-eviction-tenacity", "10", 0, 100).later();
    /// How slowly the access counter of LFU eviction saturates; greater is slower.
    LFU_LOG_FACTOR = int("lfu-log-factor", "10", 0, I32);
    /// Minutes after which an access counter of LFU eviction loses one; 0 never.
    LFU_DECAY_TIME = int("lfu-decay-time", "1", 0, I32);
    /// How hard the search for expired keys works, from 1 to 10.
    ACTIVE_EXPIRE_EFFORT = int("active-expire-effort", "1", 1, 10);
    /// Free evicted values in the background.
    LAZYFREE_LAZY_EVICTION = switch("lazyfree-lazy-eviction", "no").later();
    /// Free expired values in the background.
    LAZYFREE_LAZY_EXPIRE = switch("lazyfree-lazy-expire", "no").later();
    /// Free values that a command overwrites or deletes on the way in the background.
    LAZYFREE_LAZY_SERVER_DEL = switch("lazyfree-lazy-server-del", "no").later();
    /// Let DEL behave like UNLINK.
    LAZYFREE_LAZY_USER_DEL = switch("lazyfree-lazy-user-del", "no").later();
    /// Let FLUSHALL, FLUSHDB, SCRIPT FLUSH and FUNCTION FLUSH work in the background unless they say SYNC.
    LAZYFREE_LAZY_USER_FLUSH = switch("lazyfree-lazy-user-flush", "no").later();
    /// Move entries of growing tables a little in every turn of the chores.
    ACTIVEREHASHING = switch("activerehashing", "yes").inert();
    /// Let the allocator return unused pages from a thread of its own.
    JEMALLOC_BG_THREAD = switch("jemalloc-bg-thread", "yes").later();
    /// Compact fragmented memory while running; this build cannot, so only `no` is allowed.
    ACTIVEDEFRAG = switch("activedefrag", "no").settle(settle::no_defrag);
    /// Bytes of waste below which defragmentation does not start.
    ACTIVE_DEFRAG_IGNORE_BYTES = memory("active-defrag-ignore-bytes", "100mb", 1, SIZE).inert();
    /// Percentage of fragmentation at which defragmentation starts.
    ACTIVE_DEFRAG_THRESHOLD_LOWER = int("active-defrag-threshold-lower", "10", 0, 1000).inert();
    /// Percentage of fragmentation at which defragmentation works hardest.
    ACTIVE_DEFRAG_THRESHOLD_UPPER = int("active-defrag-threshold-upper", "100", 0, 1000).inert();
    /// Least percentage of processor time for defragmentation.
    ACTIVE_DEFRAG_CYCLE_MIN = int("active-defrag-cycle-min", "1", 1, 99).inert();
    /// Greatest percentage of processor time for defragmentation.
    ACTIVE_DEFRAG_CYCLE_MAX = int("active-defrag-cycle-max", "25", 1, 99).inert();
    /// Elements above which a container is defragmented in several steps.
    ACTIVE_DEFRAG_MAX_SCAN_FIELDS = int("active-defrag-max-scan-fields", "1000", 1, I64).inert();
}
Encodings {
    /// Most fields of a hash kept in its compact encoding.
    HASH_MAX_LISTPACK_ENTRIES = int("hash-max-listpack-entries", "512", 0, I64)
        .alias("hash-max-ziplist-entries");
    /// Most bytes of a field or value of a hash kept in its compact encoding.
    HASH_MAX_LISTPACK_VALUE = memory("hash-max-listpack-value", "64", 0, SIZE)
        .alias("hash-max-ziplist-value");
    /// Size of one node of a list: elements when positive, from -1 for 4 kilobytes to -5 for 64 kilobytes when negative.
    LIST_MAX_LISTPACK_SIZE = int("list-max-listpack-size", "-2", i32::MIN as i64, I32)
        .alias("list-max-ziplist-size");
    /// Nodes at each end of a list that stay uncompressed; 0 compresses none.
    LIST_COMPRESS_DEPTH = int("list-compress-depth", "0", 0, I32);
    /// Most members of a set of integers kept in its compact encoding.
    SET_MAX_INTSET_ENTRIES = int("set-max-intset-entries", "512", 0, I64);
    /// Most members of a set kept in its compact encoding.
    SET_MAX_LISTPACK_ENTRIES = int("set-max-listpack-entries", "128", 0, I64);
    /// Most bytes of a member of a set kept in its compact encoding.
    SET_MAX_LISTPACK_VALUE = int("set-max-listpack-value", "64", 0, I64);
    /// Most members of a sorted set kept in its compact encoding.
    ZSET_MAX_LISTPACK_ENTRIES = int("zset-max-listpack-entries", "128", 0, I64)
        .alias("zset-max-ziplist-entries");
    /// Most bytes of a member of a sorted set kept in its compact encoding.
    ZSET_MAX_LISTPACK_VALUE = memory("zset-max-listpack-value", "64", 0, SIZE)
        .alias("zset-max-ziplist-value");
    /// Bytes at which a HyperLogLog leaves its sparse encoding.
    HLL_SPARSE_MAX_BYTES = memory("hll-sparse-max-bytes", "3000", 0, SIZE);
    /// Bytes of one node of a stream; 0 sets no limit.
    STREAM_NODE_MAX_BYTES = memory("stream-node-max-bytes", "4096", 0, SIZE);
    /// Entries of one node of a stream; 0 sets no limit.
    STREAM_NODE_MAX_ENTRIES = int("stream-node-max-entries", "100", 0, I64);
}
Snapshots {
    /// Pairs of seconds and changes: a snapshot is taken when both have passed; empty, the default while there are no snapshots, takes none.
    SAVE = row("save", "3600 1 300 100 60 10000", Kind::Save);
    /// Name of the snapshot file inside `dir`.
    DBFILENAME = text("dbfilename", "dump.rdb").with(flags::PROTECTED).settle(settle::dbfilename);
    /// Compress long strings in snapshots.
    RDBCOMPRESSION = switch("rdbcompression", "yes");
    /// End snapshots with a checksum and verify it on loading.
    RDBCHECKSUM = switch("rdbchecksum", "yes").immutable();
    /// Check the inner structure of values that are loaded or restored; this server always does.
    SANITIZE_DUMP_PAYLOAD = choice("sanitize-dump-payload", "no", SANITIZES).inert();
    /// Refuse writes after a snapshot in the background has failed.
    STOP_WRITES_ON_BGSAVE_ERROR = switch("stop-writes-on-bgsave-error", "yes");
    /// Delete snapshot files that only served replication, when nothing else persists.
    RDB_DEL_SYNC_FILES = switch("rdb-del-sync-files", "no").later();
    /// Flush a snapshot to disk piece by piece while it is written.
    RDB_SAVE_INCREMENTAL_FSYNC = switch("rdb-save-incremental-fsync", "yes");
}
AppendOnly {
    /// Log every write to the append-only file.
    APPENDONLY = switch("appendonly", "no");
    /// When the append-only file is flushed to disk.
    APPENDFSYNC = choice("appendfsync", "everysec", FSYNCS);
    /// First part of the names of the append-only files.
    APPENDFILENAME = text("appendfilename", "appendonly.aof").immutable().settle(settle::appendfilename);
    /// Directory of the append-only files inside `dir`.
    APPENDDIRNAME = text("appenddirname", "appendonlydir").immutable().settle(settle::appenddirname);
    /// Do not flush the append-only file while a rewrite or a snapshot keeps the disk busy.
    NO_APPENDFSYNC_ON_REWRITE = switch("no-appendfsync-on-rewrite", "no");
    /// Percentage of growth since the last rewrite that starts the next one; 0 never.
    AUTO_AOF_REWRITE_PERCENTAGE = int("auto-aof-rewrite-percentage", "100", 0, I32);
    /// Bytes below which no rewrite starts by itself.
    AUTO_AOF_REWRITE_MIN_SIZE = memory("auto-aof-rewrite-min-size", "64mb", 0, SIZE);
    /// Start up although the append-only file ends in the middle of a command, dropping that command.
    AOF_LOAD_TRUNCATED = switch("aof-load-truncated", "yes");
    /// Write the base of the append-only file in the snapshot format.
    AOF_USE_RDB_PREAMBLE = switch("aof-use-rdb-preamble", "yes");
    /// Note the time in the append-only file, which allows recovery up to a moment.
    AOF_TIMESTAMP_ENABLED = switch("aof-timestamp-enabled", "no");
    /// Flush a rewritten file to disk piece by piece while it is written.
    AOF_REWRITE_INCREMENTAL_FSYNC = switch("aof-rewrite-incremental-fsync", "yes");
    /// Keep append-only files that are no longer needed.
    AOF_DISABLE_AUTO_GC = switch("aof-disable-auto-gc", "no").hidden();
}
Replication {
    /// Host and port of the primary to replicate; empty makes this server a primary.
    REPLICAOF = row("replicaof", "", Kind::Primary).alias("slaveof").immutable().later();
    /// Password for the primary; empty for none.
    MASTERAUTH = optional("masterauth").with(flags::SENSITIVE).later();
    /// User name for the primary; empty for the default user.
    MASTERUSER = optional("masteruser").with(flags::SENSITIVE).later();
    /// Answer reads with old data while the link to the primary is down.
    REPLICA_SERVE_STALE_DATA = switch("replica-serve-stale-data", "yes").alias("slave-serve-stale-data").later();
    /// Refuse writes from clients while replicating.
    REPLICA_READ_ONLY = switch("replica-read-only", "yes").alias("slave-read-only").later();
    /// Leave eviction to the primary.
    REPLICA_IGNORE_MAXMEMORY = switch("replica-ignore-maxmemory", "yes").alias("slave-ignore-maxmemory").later();
    /// Free the old data set in the background when a replica loads a new one.
    REPLICA_LAZY_FLUSH = switch("replica-lazy-flush", "no").alias("slave-lazy-flush").later();
    /// Rank for promotion, lower first; 0 is never promoted.
    REPLICA_PRIORITY = int("replica-priority", "100", 0, I32).alias("slave-priority").later();
    /// Whether this replica is listed to clients and monitors.
    REPLICA_ANNOUNCED = switch("replica-announced", "yes").later();
    /// Address a replica reports to its primary; empty lets the primary see for itself.
    REPLICA_ANNOUNCE_IP = optional("replica-announce-ip").alias("slave-announce-ip").later();
    /// Port a replica reports to its primary; 0 reports the real one.
    REPLICA_ANNOUNCE_PORT = int("replica-announce-port", "0", 0, PORT_MAX).alias("slave-announce-port").later();
    /// Carry on replicating although a write to the replica's own disk failed.
    REPLICA_IGNORE_DISK_WRITE_ERRORS = switch("replica-ignore-disk-write-errors", "no").later();
    /// Bytes of the primary's stream that a replica holds during a full synchronisation; 0 takes its output limit.
    REPLICA_FULL_SYNC_BUFFER_LIMIT = memory("replica-full-sync-buffer-limit", "0", 0, SIZE).later();
    /// Bytes of the backlog that lets a replica catch up after a short absence, raised to 16384 when less.
    REPL_BACKLOG_SIZE = memory("repl-backlog-size", "1mb", 1, SIZE).settle(settle::backlog).later();
    /// Seconds without replicas after which the backlog is freed; 0 never.
    REPL_BACKLOG_TTL = int("repl-backlog-ttl", "3600", 0, I64).later();
    /// Seconds of silence after which a replication link counts as broken.
    REPL_TIMEOUT = int("repl-timeout", "60", 1, I32).later();
    /// Seconds between a primary's pings to its replicas.
    REPL_PING_REPLICA_PERIOD = int("repl-ping-replica-period", "10", 1, I32)
        .alias("repl-ping-slave-period").later();
    /// Gather small packets to replicas, for less traffic and more delay.
    REPL_DISABLE_TCP_NODELAY = switch("repl-disable-tcp-nodelay", "no").later();
    /// Send full synchronisations straight to the socket, without a file.
    REPL_DISKLESS_SYNC = switch("repl-diskless-sync", "yes").later();
    /// Seconds a full synchronisation waits for further replicas to join.
    REPL_DISKLESS_SYNC_DELAY = int("repl-diskless-sync-delay", "5", 0, I32).later();
    /// Replicas whose arrival ends that wait early; 0 waits to the end.
    REPL_DISKLESS_SYNC_MAX_REPLICAS = int("repl-diskless-sync-max-replicas", "0", 0, I32).later();
    /// When a replica loads a full synchronisation straight from the socket.
    REPL_DISKLESS_LOAD = choice("repl-diskless-load", "disabled", DISKLESS_LOADS)
        .with(flags::DENY_LOADING).later();
    /// Transfer a full synchronisation on a connection of its own.
    REPL_RDB_CHANNEL = switch("repl-rdb-channel", "yes").hidden().later();
    /// Replicas that must be in touch for writes to be accepted; 0 asks for none.
    MIN_REPLICAS_TO_WRITE = int("min-replicas-to-write", "0", 0, I32).alias("min-slaves-to-write").later();
    /// Seconds since its last word within which a replica counts as in touch.
    MIN_REPLICAS_MAX_LAG = int("min-replicas-max-lag", "10", 0, I32).alias("min-slaves-max-lag").later();
    /// What to do when a replicated or logged command fails to apply.
    PROPAGATION_ERROR_BEHAVIOR = choice("propagation-error-behavior", "ignore", APPLY_ERRORS).later();
}
Cluster {
    /// Speak the cluster protocol.
    CLUSTER_ENABLED = switch("cluster-enabled", "no").immutable().later();
    /// File inside `dir` in which the node keeps its view of the cluster.
    CLUSTER_CONFIG_FILE = text("cluster-config-file", "nodes.conf").immutable().later();
    /// Port of the cluster bus; 0 means the client port plus 10000.
    CLUSTER_PORT = int("cluster-port", "0", 0, PORT_MAX).immutable().later();
    /// Milliseconds of silence after which a node counts as failing.
    CLUSTER_NODE_TIMEOUT = int("cluster-node-timeout", "15000", 0, I64).later();
    /// Milliseconds between pings on the bus; 0 takes the built-in pace.
    CLUSTER_PING_INTERVAL = int("cluster-ping-interval", "0", 0, I64).hidden().later();
    /// Refuse queries when any slot is unserved.
    CLUSTER_REQUIRE_FULL_COVERAGE = switch("cluster-require-full-coverage", "yes").later();
    /// Serve reads of own slots while the cluster is down.
    CLUSTER_ALLOW_READS_WHEN_DOWN = switch("cluster-allow-reads-when-down", "no").later();
    /// Serve sharded pub/sub of own slots while the cluster is down.
    CLUSTER_ALLOW_PUBSUBSHARD_WHEN_DOWN = switch("cluster-allow-pubsubshard-when-down", "yes").later();
    /// Let replicas move to primaries that have none.
    CLUSTER_ALLOW_REPLICA_MIGRATION = switch("cluster-allow-replica-migration", "yes").later();
    /// Replicas that must remain with a primary before one may move away.
    CLUSTER_MIGRATION_BARRIER = int("cluster-migration-barrier", "1", 0, I32).later();
    /// Never start a failover from this replica by itself.
    CLUSTER_REPLICA_NO_FAILOVER = switch("cluster-replica-no-failover", "no")
        .alias("cluster-slave-no-failover").later();
    /// How stale a replica may be and still fail over, in node timeouts; 0 sets no limit.
    CLUSTER_REPLICA_VALIDITY_FACTOR = int("cluster-replica-validity-factor", "10", 0, I32)
        .alias("cluster-slave-validity-factor").later();
    /// Address told to other nodes and to clients; empty for the detected one.
    CLUSTER_ANNOUNCE_IP = optional("cluster-announce-ip").later();
    /// Port told to others; 0 for the real one.
    CLUSTER_ANNOUNCE_PORT = int("cluster-announce-port", "0", 0, PORT_MAX).later();
    /// TLS port told to others; 0 for the real one.
    CLUSTER_ANNOUNCE_TLS_PORT = int("cluster-announce-tls-port", "0", 0, PORT_MAX).later();
    /// Bus port told to others; 0 for the real one.
    CLUSTER_ANNOUNCE_BUS_PORT = int("cluster-announce-bus-port", "0", 0, PORT_MAX).later();
    /// Host name told to clients; empty for none.
    CLUSTER_ANNOUNCE_HOSTNAME = optional("cluster-announce-hostname").settle(settle::hostname).later();
    /// Name for people, shown in logs; empty for none.
    CLUSTER_ANNOUNCE_HUMAN_NODENAME = optional("cluster-announce-human-nodename").settle(settle::nodename).later();
    /// What CLUSTER SLOTS and redirections name a node by.
    CLUSTER_PREFERRED_ENDPOINT_TYPE = choice("cluster-preferred-endpoint-type", "ip", ENDPOINTS).later();
    /// Bytes that may wait on one link of the bus; 0 sets no limit.
    CLUSTER_LINK_SENDBUF_LIMIT = memory("cluster-link-sendbuf-limit", "0", 0, u64::MAX).later();
    /// Percentage of commands checked for being fit for a cluster; 0 checks none.
    CLUSTER_COMPATIBILITY_SAMPLE_RATIO = int("cluster-compatibility-sample-ratio", "0", 0, 100).later();
}
Security {
    /// Password of the default user; empty for none.
    REQUIREPASS = optional("requirepass").with(flags::SENSITIVE).later();
    /// File of user definitions; empty keeps users in the config file.
    ACLFILE = text("aclfile", "").immutable().later();
    /// Channels a new user may use.
    ACL_PUBSUB_DEFAULT = choice("acl-pubsub-default", "resetchannels", CHANNEL_DEFAULTS).later();
    /// Entries kept of refused commands and logins.
    ACLLOG_MAX_LEN = int("acllog-max-len", "128", 0, I64).later();
    /// Who may change protected parameters with CONFIG SET: nobody, anyone, or clients on this machine.
    ENABLE_PROTECTED_CONFIGS = choice("enable-protected-configs", "no", PERMISSIONS).immutable();
    /// Who may use DEBUG: nobody, anyone, or clients on this machine.
    ENABLE_DEBUG_COMMAND = choice("enable-debug-command", "no", PERMISSIONS).immutable();
    /// Who may use MODULE; there are no modules to load.
    ENABLE_MODULE_COMMAND = choice("enable-module-command", "no", PERMISSIONS).immutable();
}
Tls {
    /// TCP port for TLS; 0 opens none.
    TLS_PORT = int("tls-port", "0", 0, PORT_MAX).later();
    /// File of the server's certificate chain in PEM; empty for none.
    TLS_CERT_FILE = optional("tls-cert-file").with(flags::VOLATILE).later();
    /// File of the server's private key in PEM; empty for none.
    TLS_KEY_FILE = optional("tls-key-file").with(flags::VOLATILE).later();
    /// Password of the private key; empty for none.
    TLS_KEY_FILE_PASS = optional("tls-key-file-pass").with(flags::SENSITIVE).later();
    /// File of the certificate for outgoing connections; empty takes the server's.
    TLS_CLIENT_CERT_FILE = optional("tls-client-cert-file").with(flags::VOLATILE).later();
    /// File of the private key for outgoing connections; empty takes the server's.
    TLS_CLIENT_KEY_FILE = optional("tls-client-key-file").with(flags::VOLATILE).later();
    /// Password of that key; empty for none.
    TLS_CLIENT_KEY_FILE_PASS = optional("tls-client-key-file-pass").with(flags::SENSITIVE).later();
    /// File of Diffie-Hellman parameters; empty for none.
    TLS_DH_PARAMS_FILE = optional("tls-dh-params-file").with(flags::VOLATILE).later();
    /// File of the certificates that peers are checked against.
    TLS_CA_CERT_FILE = optional("tls-ca-cert-file").with(flags::VOLATILE).later();
    /// Directory of the certificates that peers are checked against.
    TLS_CA_CERT_DIR = optional("tls-ca-cert-dir").with(flags::VOLATILE).later();
    /// Whether clients must show a certificate.
    TLS_AUTH_CLIENTS = choice("tls-auth-clients", "yes", CLIENT_CERTS).later();
    /// Use TLS towards the primary.
    TLS_REPLICATION = switch("tls-replication", "no").later();
    /// Use TLS on the cluster bus.
    TLS_CLUSTER = switch("tls-cluster", "no").later();
    /// Protocol versions allowed, by name; empty for the safe ones.
    TLS_PROTOCOLS = optional("tls-protocols").later();
    /// Ciphers allowed up to TLS 1.2; empty for the library's choice.
    TLS_CIPHERS = optional("tls-ciphers").later();
    /// Cipher suites allowed in TLS 1.3; empty for the library's choice.
    TLS_CIPHERSUITES = optional("tls-ciphersuites").later();
    /// Prefer the server's order of ciphers over the client's.
    TLS_PREFER_SERVER_CIPHERS = switch("tls-prefer-server-ciphers", "no").later();
    /// Let clients resume earlier sessions.
    TLS_SESSION_CACHING = switch("tls-session-caching", "yes").later();
    /// Sessions remembered for resuming; 0 sets no limit.
    TLS_SESSION_CACHE_SIZE = int("tls-session-cache-size", "20480", 0, I32).later();
    /// Seconds for which a session can be resumed.
    TLS_SESSION_CACHE_TIMEOUT = int("tls-session-cache-timeout", "300", 0, I32).later();
}
Scripting {
    /// Milliseconds a script runs before other clients are told that the server is busy; 0 never tells.
    BUSY_REPLY_THRESHOLD = int("busy-reply-threshold", "5000", 0, I64).alias("lua-time-limit").later();
    /// Offer scripts the parts of Lua that were withdrawn for safety.
    LUA_ENABLE_DEPRECATED_API = switch("lua-enable-deprecated-api", "no").immutable().hidden().later();
}
Monitoring {
    /// Microseconds above which a command enters the slow log; 0 logs every one, -1 none.
    SLOWLOG_LOG_SLOWER_THAN = int("slowlog-log-slower-than", "10000", -1, I64);
    /// Entries kept in the slow log.
    SLOWLOG_MAX_LEN = int("slowlog-max-len", "128", 0, I64);
    /// Milliseconds above which an event enters the latency monitor; 0 turns it off.
    LATENCY_MONITOR_THRESHOLD = int("latency-monitor-threshold", "0", 0, I64);
    /// Keep a histogram of each command's latency.
    LATENCY_TRACKING = switch("latency-tracking", "yes");
    /// Percentiles of those histograms that INFO shows.
    LATENCY_TRACKING_INFO_PERCENTILES = row("latency-tracking-info-percentiles", "50 99 99.9", Kind::Percentiles);
    /// Classes of key events that are published, one letter each; empty publishes none.
    NOTIFY_KEYSPACE_EVENTS = row("notify-keyspace-events", "", Kind::Events);
    /// Keys remembered for client-side caching; 0 sets no limit.
    TRACKING_TABLE_MAX_KEYS = int("tracking-table-max-keys", "1000000", 0, I64);
}
System {
    /// Cores that the serving threads may run on, as a list such as `0-3,8`; empty for any.
    SERVER_CPULIST = optional("server-cpulist").alias("server_cpulist").immutable().later();
    /// Cores that the background threads may run on; empty for any.
    BIO_CPULIST = optional("bio-cpulist").alias("bio_cpulist").immutable().later();
    /// Cores that a rewrite of the append-only file may run on; empty for any.
    AOF_REWRITE_CPULIST = optional("aof-rewrite-cpulist").alias("aof_rewrite_cpulist").immutable().later();
    /// Cores that a snapshot may run on; empty for any.
    BGSAVE_CPULIST = optional("bgsave-cpulist").alias("bgsave_cpulist").immutable().later();
    /// Turn transparent huge pages off for this process.
    DISABLE_THP = switch("disable-thp", "yes").immutable().later();
    /// Whether to tell the system which of our processes to sacrifice first when memory runs out.
    OOM_SCORE_ADJ = choice("oom-score-adj", "no", OOM_MODES).later();
    /// Scores for that as primary, as replica and for background work, each within -2000 and 2000.
    OOM_SCORE_ADJ_VALUES = row("oom-score-adj-values", "0 200 800", Kind::OomScores).later();
    /// Names of warnings about the system that do not stop the server.
    IGNORE_WARNINGS = text("ignore-warnings", "").later();
}
Compatibility {
    /// Milliseconds after which a stuck event loop reports itself; 0 never.
    WATCHDOG_PERIOD = int("watchdog-period", "0", 0, I32).hidden().later();
    /// Exit instead of aborting on a fatal error; for tests.
    USE_EXIT_ON_PANIC = switch("use-exit-on-panic", "no").hidden().inert();
    /// Microseconds that each key of a snapshot takes in tests, counted over all shards; negative numbers mean none.
    RDB_KEY_SAVE_DELAY = int("rdb-key-save-delay", "0", i32::MIN as i64, I32).hidden();
    /// Microseconds to sleep after each key loaded from a snapshot in tests; negative numbers mean none.
    KEY_LOAD_DELAY = int("key-load-delay", "0", i32::MIN as i64, I32).hidden();
    /// Bytes loaded between two looks at the clients.
    LOADING_PROCESS_EVENTS_INTERVAL_BYTES = int("loading-process-events-interval-bytes", "524288", 1024, I32)
        .hidden().later();
    /// Known from Valkey: answer as Redis where the two differ, which is what this server does anyway.
    EXTENDED_REDIS_COMPATIBILITY = switch("extended-redis-compatibility", "no").hidden().inert();
    /// Known from Valkey: how to treat snapshots of a newer version.
    RDB_VERSION_CHECK = choice("rdb-version-check", "strict", RDB_CHECKS).hidden();
    /// Known from Valkey: full synchronisation on a connection of its own.
    DUAL_CHANNEL_REPLICATION_ENABLED = switch("dual-channel-replication-enabled", "no").hidden().later();
    /// Known from Valkey: the parts of Lua that were withdrawn for safety.
    LUA_ENABLE_INSECURE_API = switch("lua-enable-insecure-api", "no").with(flags::PROTECTED).hidden().later();
    /// Known from Valkey: check internal assertions that are too slow for production.
    ENABLE_DEBUG_ASSERT = switch("enable-debug-assert", "no").immutable().hidden().inert();
    /// Known from Valkey: a note that crash reports show.
    DEBUG_CONTEXT = text("debug-context", "").hidden().inert();
    /// Known from Valkey: keep its I/O threads awake.
    IO_THREADS_ALWAYS_ACTIVE = switch("io-threads-always-active", "no").hidden().inert();
    /// Known from Valkey: I/O threads from which replies are sent without a copy.
    MIN_IO_THREADS_AVOID_COPY_REPLY = int("min-io-threads-avoid-copy-reply", "7", 0, I32).hidden().inert();
    /// Known from Valkey: bytes from which a string is sent without a copy.
    MIN_STRING_SIZE_AVOID_COPY_REPLY = int("min-string-size-avoid-copy-reply", "16384", 0, I32).hidden().inert();
    /// Known from Valkey: the same with I/O threads, in bytes.
    MIN_STRING_SIZE_AVOID_COPY_REPLY_THREADED = int("min-string-size-avoid-copy-reply-threaded", "65536", 0, I32)
        .hidden().inert();
    /// Known from Valkey: commands looked up together.
    PREFETCH_BATCH_MAX_SIZE = int("prefetch-batch-max-size", "16", 0, 128).hidden().inert();
}
}
