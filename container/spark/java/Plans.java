package homeport.spark;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.Serializable;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.security.MessageDigest;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.memory.SparkOutOfMemoryError;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SparkUncaughtExceptionHandler;
import scala.None$;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.math.BigInt$;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;

/**
 * Plans that were made once, and the connection over which batches reach them.
 *
 * <p>Over the connection each number is an int or a long as DataOutputStream writes it. LOAD: the
 * source, its partitions, in each its record batches, each with its length. RUN: the plan; the
 * answer is the number of record batches and these, or FAILED. UNLOAD: the source. LOADED: any
 * number; the answer is 0, when all before it is done.
 */
public final class Plans {
    private static final int LOAD = 1;
    private static final int RUN = 2;
    private static final int UNLOAD = 3;
    private static final int LOADED = 4;
    private static final int FAILED = -1;
    private static final int BUFFER_BYTES = 1 << 16;
    /** A client that has not sent the secret by then gets no answer. */
    private static final int SECRET_MS = 30000;
    /** Numbers of tasks, beyond those that Spark gives its own; all plans of a JVM share them. */
    private static final AtomicLong TASKS = new AtomicLong(1L << 48);

    private final SparkSession session;
    private final SparkContext context;
    private final Map plans = Collections.synchronizedMap(new HashMap());
    private final long resultLimit;
    private volatile Throwable failure;

    public Plans(SparkSession session) {
        this.session = session;
        this.context = session.sparkContext();
        // The context has copied its settings at its start, and copies them for each question.
        this.resultLimit = context.getConf().getSizeAsBytes("spark.driver.maxResultSize", "1g");
    }

    /** A frame over the batches that will be loaded as that source, all of the same schema. */
    public Dataset frame(long source, int partitions, String schemaJson) {
        return frame(source, partitions, schemaJson, false);
    }

    /**
     * A frame over rows that stay the same for many batches. Joins send them to all, as for Spark
     * they are next to nothing, and keep what they have made of them until {@link #renew}.
     */
    public Dataset standing(long source, String schemaJson) {
        return frame(source, 1, schemaJson, true);
    }

    private Dataset frame(long source, int partitions, String schemaJson, boolean isStanding) {
        StructType schema = (StructType) DataType$.MODULE$.fromJson(schemaJson);
        SQLConf conf = session.sessionState().conf();
        BatchRdd rdd =
                new BatchRdd(
                        context,
                        source,
                        partitions,
                        schema,
                        conf.sessionLocalTimeZone(),
                        conf.arrowUseLargeVarTypes(),
                        isStanding);
        Partitioning partitioning =
                partitions == 1
                        ? (Partitioning) SinglePartition$.MODULE$
                        : (Partitioning) new UnknownPartitioning(0);
        Statistics size =
                new Statistics(
                        BigInt$.MODULE$.int2bigInt(1),
                        (Option) None$.MODULE$,
                        Statistics.apply$default$3(),
                        false);
        Seq columns = (Seq) DataTypeUtils$.MODULE$.toAttributes(schema);
        Option stats = isStanding ? (Option) new Some(size) : (Option) None$.MODULE$;
        return Dataset$.MODULE$.ofRows(session, rows(columns, rdd, partitioning, session, stats));
    }

    private static LogicalRDD rows(
            Seq columns, BatchRdd rdd, Partitioning dealt, SparkSession session, Option stats) {
        return new LogicalRDD(
                columns,
                rdd,
                dealt,
                (Seq) Nil$.MODULE$,
                false,
                (Option) None$.MODULE$,
                session,
                stats,
                (Option) None$.MODULE$,
                false);
    }

    /** The place of a plan that reads batches, with these columns more. */
    static LogicalRDD widened(LogicalRDD place, StructType more, SparkSession session) {
        BatchRdd rdd = ((BatchRdd) place.rdd()).with(more);
        Seq added = (Seq) DataTypeUtils$.MODULE$.toAttributes(more);
        return rows(
                (Seq) place.output().appendedAll(added),
                rdd,
                place.outputPartitioning(),
                session,
                (Option) None$.MODULE$);
    }

    /**
     * The plan of {@code frame} is kept as {@code id}, and null is the answer; or why it serves one
     * batch alone, and it is not kept.
     */
    public String keep(long id, Dataset frame, long[] sources) {
        for (int i = 0; i < sources.length; i++) {
            if (Batches.isTouched(sources[i])) {
                return "the pipeline's function itself looks at rows";
            }
        }
        return kept(id, frame);
    }

    private String kept(long id, Dataset frame) {
        Soundness soundness = new Soundness();
        String reason = soundness.reason(frame.queryExecution());
        if (reason != null) {
            return reason;
        }
        RDD rdd = frame.toArrowBatchRdd();
        reason = Soundness.reason(rdd);
        if (reason == null) {
            boolean isOne = rdd.partitions().length == 1;
            boolean isAtOnce = isOne && !soundness.needsScheduler();
            SparkPlan executed = frame.queryExecution().executedPlan();
            plans.put(Long.valueOf(id), new Plan(frame, executed, rdd, isAtOnce));
        }
        return reason;
    }

    /** A line for each column of batches whose JSON the plan parses, see {@link ParsedJson}. */
    public String parses(Dataset frame) {
        return ParsedJson.wanted(frame.queryExecution().optimizedPlan());
    }

    /**
     * The plan {@code id} finds that JSON parsed: its frame from now on; null: such a plan would
     * serve one batch alone, and nothing has changed.
     */
    public Dataset parsed(long id, Dataset frame, String lines) {
        LogicalPlan plan = ParsedJson.over(frame.queryExecution().optimizedPlan(), lines, session);
        Dataset found = Dataset$.MODULE$.ofRows(session, plan);
        return kept(id, found) == null ? found : null;
    }

    /**
     * The plan has what its standing frames are loaded with now. It is the same plan: nothing of
     * it is decided again.
     */
    public void renew(long id) {
        Plan plan = (Plan) plans.get(Long.valueOf(id));
        SparkSession.setActiveSession(session);
        QueryExecution query = plan.frame.queryExecution();
        SparkPlan executed = (SparkPlan) query.sparkPlan().clone();
        Iterator rules = query.preparations().iterator();
        while (rules.hasNext()) {
            executed = (SparkPlan) ((Rule) rules.next()).apply(executed);
        }
        RDD rdd = plan.frame.toArrowBatchRdd(executed);
        plans.put(Long.valueOf(id), new Plan(plan.frame, executed, rdd, plan.isAtOnce));
        letGo(plan.executed);
    }

    /** What the plan had sent to all takes no memory any more; no task of it runs. */
    private static void letGo(SparkPlan plan) {
        if (plan instanceof BroadcastExchangeExec) {
            try {
                plan.executeBroadcast().destroy();
            } catch (Throwable error) {
                // It was never sent.
                endIfFatal(error);
            }
        }
        Iterator all = plan.children().iterator();
        while (all.hasNext()) {
            letGo((SparkPlan) all.next());
        }
    }

    /** The optimized plan of {@code frame}, as Spark writes it in JSON: what {@link #keep} runs. */
    public String optimized(Dataset frame) {
        return frame.queryExecution().optimizedPlan().toJSON();
    }

    /** A line for each place of that plan that reads a source: its number, and its columns' ids. */
    public String leaves(Dataset frame) {
        StringBuilder lines = new StringBuilder();
        Iterator all = frame.queryExecution().optimizedPlan().collectLeaves().iterator();
        while (all.hasNext()) {
            Object leaf = all.next();
            if (leaf instanceof LogicalRDD && ((LogicalRDD) leaf).rdd() instanceof BatchRdd) {
                lines.append(((BatchRdd) ((LogicalRDD) leaf).rdd()).source());
                Iterator columns = ((LogicalRDD) leaf).output().iterator();
                while (columns.hasNext()) {
                    lines.append(' ').append(((Attribute) columns.next()).exprId().id());
                }
                lines.append('\n');
            }
        }
        return lines.toString();
    }

    /** Batches of that source have these columns alone; the others are null. */
    public void narrow(long source, String schemaJson) {
        Batches.narrow(source, (StructType) DataType$.MODULE$.fromJson(schemaJson));
    }

    /** Nothing of that plan is left. */
    public void drop(long id) {
        Plan plan = (Plan) plans.remove(Long.valueOf(id));
        if (plan != null) {
            letGo(plan.executed);
        }
    }

    /** No rows of that source were requested so far. */
    public void untouch(long source) {
        Batches.untouch(source);
    }

    /** Nothing of that source is left. */
    public void forget(long source) {
        Batches.forget(source);
    }

    /** Throws what the last run has failed with. */
    public void rethrow() throws Throwable {
        Throwable last = failure;
        failure = null;
        throw last;
    }

    /** The port on this machine alone, on which one client with that secret is served. */
    public int serve(final byte[] secret) throws IOException {
        final ServerSocket server = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"));
        Thread thread =
                new Thread("homeport-batches") {
                    public void run() {
                        accept(server, secret);
                    }
                };
        thread.setDaemon(true);
        thread.start();
        return server.getLocalPort();
    }

    private void accept(ServerSocket server, byte[] secret) {
        try {
            boolean isServed = false;
            while (!isServed) {
                Socket client = server.accept();
                try {
                    DataInputStream in =
                            new DataInputStream(
                                    new BufferedInputStream(client.getInputStream(), BUFFER_BYTES));
                    isServed = knows(secret, in, client);
                    if (isServed) {
                        server.close();
                        serve(in, client);
                    }
                } catch (IOException end) {
                    // This client is gone, or is none of ours; another one may come.
                } finally {
                    client.close();
                }
            }
        } catch (IOException end) {
            // No client can come any more.
        }
    }

    private static boolean knows(byte[] secret, DataInputStream in, Socket client)
            throws IOException {
        byte[] said = new byte[secret.length];
        client.setSoTimeout(SECRET_MS);
        in.readFully(said);
        client.setSoTimeout(0);
        client.setTcpNoDelay(true);
        return MessageDigest.isEqual(said, secret);
    }

    private void serve(DataInputStream in, Socket client) throws IOException {
        DataOutputStream out =
                new DataOutputStream(
                        new BufferedOutputStream(client.getOutputStream(), BUFFER_BYTES));
        while (true) {
            int order;
            try {
                order = in.readInt();
            } catch (EOFException end) {
                return;
            }
            long id = in.readLong();
            if (order == LOAD) {
                Batches.put(id, read(in));
            } else if (order == UNLOAD) {
                Batches.remove(id);
            } else if (order == RUN) {
                answer(id, out);
            } else if (order == LOADED) {
                out.writeInt(0);
                out.flush();
            } else {
                throw new IOException("order " + order);
            }
        }
    }

    private static byte[][][] read(DataInputStream in) throws IOException {
        byte[][][] partitions = new byte[in.readInt()][][];
        for (int i = 0; i < partitions.length; i++) {
            byte[][] batches = new byte[in.readInt()][];
            for (int j = 0; j < batches.length; j++) {
                batches[j] = new byte[in.readInt()];
                in.readFully(batches[j]);
            }
            partitions[i] = batches;
        }
        return partitions;
    }

    private void answer(long id, DataOutputStream out) throws IOException {
        byte[][][] found = null;
        try {
            found = run((Plan) plans.get(Long.valueOf(id)));
        } catch (Throwable error) {
            endIfFatal(error);
            failure = error;
        }
        if (found == null) {
            out.writeInt(FAILED);
        } else {
            int count = 0;
            for (int i = 0; i < found.length; i++) {
                count += found[i].length;
            }
            out.writeInt(count);
            for (int i = 0; i < found.length; i++) {
                for (int j = 0; j < found[i].length; j++) {
                    out.writeInt(found[i][j].length);
                    out.write(found[i][j]);
                }
            }
        }
        out.flush();
    }

    private byte[][][] run(Plan plan) {
        hand(session.sessionState().conf().getAllConfs().iterator());
        if (plan.isAtOnce) {
            Partition[] partitions = plan.rdd.partitions();
            byte[][] rows =
                    PartitionTask.run(
                            plan.rdd,
                            partitions[0],
                            context.getLocalProperties(),
                            TASKS.getAndIncrement(),
                            resultLimit);
            return new byte[][][] {rows};
        }
        return (byte[][][]) context.runJob(plan.rdd, new All(), ClassTag$.MODULE$.apply(byte[][].class));
    }

    /** Spark's tasks find the session's settings where they find a job's properties. */
    private void hand(Iterator settings) {
        while (settings.hasNext()) {
            Tuple2 setting = (Tuple2) settings.next();
            if (((String) setting._1()).startsWith("spark")) {
                context.setLocalProperty((String) setting._1(), (String) setting._2());
            }
        }
    }

    /** As with Spark's own tasks. */
    private static void endIfFatal(Throwable error) {
        if (error instanceof VirtualMachineError && !(error instanceof SparkOutOfMemoryError)) {
            new SparkUncaughtExceptionHandler(true).uncaughtException(Thread.currentThread(), error);
        }
    }

    /** What is run, and whether by the thread that wants its rows. */
    private static final class Plan {
        private final Dataset frame;
        private final SparkPlan executed;
        private final RDD rdd;
        private final boolean isAtOnce;

        Plan(Dataset frame, SparkPlan executed, RDD rdd, boolean isAtOnce) {
            this.frame = frame;
            this.executed = executed;
            this.rdd = rdd;
            this.isAtOnce = isAtOnce;
        }
    }

    /** All of a partition. */
    static final class All extends AbstractFunction2 implements Serializable {
        public Object apply(Object task, Object found) {
            return PartitionTask.all((Iterator) found, 0);
        }
    }
}
