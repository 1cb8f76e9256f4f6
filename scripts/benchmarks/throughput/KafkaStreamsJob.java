import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * The work as an application of Kafka Streams; prints JSON.
 *
 * <p>Its state is on RocksDB with a changelog; input, state and output are committed in one
 * transaction, each second as Homeport's by default. What it prints counts from the JVM's begin.
 */
public final class KafkaStreamsJob {
    private static final Serde<Bytes> KEYS = Serdes.Bytes();
    private static final Serde<Long> NUMBERS = Serdes.Long();
    private static final ObjectReader READER = new ObjectMapper().readerFor(Value.class);
    private static final Duration CLOSED = Duration.ofMinutes(1);

    private long seen;
    private Throwable failure;

    private record Value(long n, String kind, double price, String x) {}

    /** {@code SERVERS NAME INPUT LIMIT RECORDS KIND}: ends after so many records of its input. */
    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createTempDirectory("homeport-bench-");
        try {
            new KafkaStreamsJob().run(arguments, folder);
            print();
        } finally {
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
    }

    private void run(String[] arguments, Path folder) throws InterruptedException {
        long limit = Long.parseLong(arguments[3]);
        long records = Long.parseLong(arguments[4]);
        CountDownLatch done = new CountDownLatch(1);
        StreamsBuilder builder = new StreamsBuilder();
        Serde<Value> values = Serdes.serdeFrom((topic, value) -> null, KafkaStreamsJob::parsed);
        KStream<Bytes, Value> given =
                builder.stream(arguments[2], Consumed.with(KEYS, values)).peek((key, value) -> {
                    if (++seen == records) {
                        done.countDown();
                    }
                });
        boolean counts = arguments[5].equals("count");
        KTable<Bytes, Long> after = counts ? counted(given, limit) : summed(given);
        after.toStream()
                .mapValues(number -> Long.toString(number))
                .to(arguments[1] + "-out", Produced.with(KEYS, Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), keys(arguments, folder));
        streams.setUncaughtExceptionHandler(error -> {
            failure = error;
            done.countDown();
            return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        done.await();
        // The thread goes on to the end of this record, and commits before it ends.
        if (!streams.close(CLOSED) || failure != null) {
            throw new IllegalStateException("Kafka Streams has not closed in order", failure);
        }
    }

    private static KTable<Bytes, Long> counted(KStream<Bytes, Value> given, long limit) {
        return given.filter((key, value) -> value.n() < limit)
                .mapValues(Value::n)
                .groupByKey(Grouped.with(KEYS, NUMBERS))
                .count(Materialized.with(KEYS, NUMBERS));
    }

    /** Without the cache, which would leave out updates. */
    private static KTable<Bytes, Long> summed(KStream<Bytes, Value> given) {
        Materialized<Bytes, Long, KeyValueStore<Bytes, byte[]>> sums =
                Materialized.with(KEYS, NUMBERS);
        return given.mapValues(Value::n)
                .groupByKey(Grouped.with(KEYS, NUMBERS))
                .reduce(Long::sum, sums.withCachingDisabled());
    }

    private static Value parsed(String topic, byte[] value) {
        try {
            return READER.readValue(value);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Properties keys(String[] arguments, Path folder) {
        Properties keys = new Properties();
        keys.put("bootstrap.servers", arguments[0]);
        keys.put("application.id", arguments[1]);
        keys.put("state.dir", folder.toString());
        keys.put("processing.guarantee", "exactly_once_v2");
        keys.put("commit.interval.ms", "1000");
        keys.put("auto.offset.reset", "earliest");
        keys.put("replication.factor", "1");
        return keys;
    }

    private static void print() {
        long began = ManagementFactory.getRuntimeMXBean().getStartTime();
        OperatingSystemMXBean system =
                (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        System.out.printf(
                Locale.ROOT,
                "{\"s\": %.3f, \"cpu_s\": %.3f}%n",
                (System.currentTimeMillis() - began) / 1e3,
                system.getProcessCpuTime() / 1e9);
    }
}
