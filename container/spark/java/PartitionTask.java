package homeport.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.Partition;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.Task;
import scala.None$;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.math.BigDecimal$;

/**
 * One of Spark's tasks, which the thread that wants the rows carries out itself.
 *
 * <p>Spark's scheduler would serialize the plan for each batch, and read it again: five to ten
 * times the work of a small batch.
 */
final class PartitionTask extends Task {
    private static final byte[] METRICS = Task.$lessinit$greater$default$7();

    private final transient RDD rdd;
    private final transient Partition partition;

    private final long limit;

    private PartitionTask(RDD rdd, Partition partition, Properties properties, long limit) {
        super(
                0,
                0,
                partition.index(),
                1,
                JobArtifactSet$.MODULE$.emptyJobArtifactSet(),
                properties,
                METRICS,
                (Option) None$.MODULE$,
                (Option) None$.MODULE$,
                (Option) None$.MODULE$,
                false);
        this.rdd = rdd;
        this.partition = partition;
        this.limit = limit;
    }

    /**
     * All of a partition's byte arrays, up to so many bytes; what the task held is free again,
     * however it ends.
     */
    static byte[][] run(RDD rdd, Partition partition, Properties properties, long id, long limit) {
        SparkEnv env = SparkEnv.get();
        TaskMemoryManager memory = new TaskMemoryManager(env.memoryManager(), id);
        PartitionTask task = new PartitionTask(rdd, partition, properties, limit);
        task.setTaskMemoryManager(memory);
        try {
            return (byte[][])
                    task.run(
                            id,
                            0,
                            env.metricsSystem(),
                            BigDecimal$.MODULE$.int2bigDecimal(1),
                            (Map) Map$.MODULE$.empty(),
                            (Option) None$.MODULE$);
        } finally {
            env.blockManager().releaseAllLocksForTask(id);
            memory.cleanUpAllAllocatedMemory();
        }
    }

    public Object runTask(TaskContext context) {
        return all(rdd.iterator(partition, context), limit);
    }

    /** Fails in the words of Spark's scheduler where there are more bytes; 0: it is never so. */
    static byte[][] all(Iterator found, long limit) {
        List all = new ArrayList();
        long size = 0;
        while (found.hasNext()) {
            byte[] next = (byte[]) found.next();
            size += next.length;
            if (limit > 0 && size > limit) {
                throw new IllegalStateException(
                        "Total size of serialized results is bigger than "
                                + "spark.driver.maxResultSize ("
                                + (limit >> 20)
                                + " MiB)");
            }
            all.add(next);
        }
        return (byte[][]) all.toArray(new byte[0][]);
    }
}
