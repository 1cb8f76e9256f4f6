package homeport.spark;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/**
 * The rows of the batch that is at work, whichever that is; or, where they are standing, rows that
 * are the same for all batches until the plan is renewed.
 */
final class BatchRdd extends RDD {
    private final long source;
    private final int partitionCount;
    private final StructType schema;
    private final String timeZone;
    private final boolean hasLargeTypes;
    private final boolean isStanding;

    BatchRdd(
            SparkContext context,
            long source,
            int partitionCount,
            StructType schema,
            String timeZone,
            boolean hasLargeTypes,
            boolean isStanding) {
        super(context, (Seq) Nil$.MODULE$, ClassTag$.MODULE$.apply(InternalRow.class));
        this.source = source;
        this.partitionCount = partitionCount;
        this.schema = schema;
        this.timeZone = timeZone;
        this.hasLargeTypes = hasLargeTypes;
        this.isStanding = isStanding;
    }

    public Iterator compute(Partition partition, TaskContext context) {
        byte[][] batches = Batches.of(source, partition.index());
        Iterator found = CollectionConverters.asScala(Arrays.asList((Object[]) batches).iterator());
        StructType narrow = Batches.narrowed(source);
        StructType read = narrow == null ? schema : narrow;
        Iterator rows =
                ArrowConverters$.MODULE$.fromBatchIterator(
                        found, read, timeZone, true, hasLargeTypes, context);
        if (hasElements(read)) {
            rows = new Unsafe(rows, UnsafeProjection.create(read));
        }
        return narrow == null ? rows : new Widened(rows, new WideRow(schema, narrow));
    }

    /**
     * Whether rows have arrays or maps. As Arrow has them, Spark's functions over them, such as
     * transform, fail at a null element.
     */
    private static boolean hasElements(DataType type) {
        if (!(type instanceof StructType)) {
            return type instanceof ArrayType || type instanceof MapType;
        }
        StructField[] fields = ((StructType) type).fields();
        boolean found = false;
        for (int index = 0; index < fields.length && !found; index++) {
            found = hasElements(fields[index].dataType());
        }
        return found;
    }

    /** The same batches with these columns more. */
    BatchRdd with(StructType more) {
        StructField[] own = schema.fields();
        StructField[] added = more.fields();
        StructField[] all = new StructField[own.length + added.length];
        System.arraycopy(own, 0, all, 0, own.length);
        System.arraycopy(added, 0, all, own.length, added.length);
        return new BatchRdd(
                context(),
                source,
                partitionCount,
                new StructType(all),
                timeZone,
                hasLargeTypes,
                isStanding);
    }

    long source() {
        return source;
    }

    boolean isStanding() {
        return isStanding;
    }

    public Partition[] getPartitions() {
        Batches.touch(source);
        Partition[] all = new Partition[partitionCount];
        for (int index = 0; index < partitionCount; index++) {
            all[index] = new Numbered(index);
        }
        return all;
    }

    /** Each row in Spark's own form; all of them are the same object. */
    static final class Unsafe extends AbstractIterator {
        private final Iterator rows;
        private final UnsafeProjection projection;

        Unsafe(Iterator rows, UnsafeProjection projection) {
            this.rows = rows;
            this.projection = projection;
        }

        public boolean hasNext() {
            return rows.hasNext();
        }

        public Object next() {
            return projection.apply((InternalRow) rows.next());
        }
    }

    /** Each row with all columns of the schema. */
    static final class Widened extends AbstractIterator {
        private final Iterator rows;
        private final WideRow wide;

        Widened(Iterator rows, WideRow wide) {
            this.rows = rows;
            this.wide = wide;
        }

        public boolean hasNext() {
            return rows.hasNext();
        }

        public Object next() {
            return wide.over((InternalRow) rows.next());
        }
    }

    /** One partition. */
    static final class Numbered implements Partition, Serializable {
        private final int index;

        Numbered(int index) {
            this.index = index;
        }

        public int index() {
            return index;
        }

        public int hashCode() {
            return index;
        }

        public boolean equals(Object other) {
            return other instanceof Numbered && ((Numbered) other).index == index;
        }

        /** Scala's compiler adds it, and Janino misses it. */
        public boolean org$apache$spark$Partition$$super$equals(Object other) {
            return this == other;
        }
    }
}
