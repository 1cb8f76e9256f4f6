package homeport.spark;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.types.StructType;

/**
 * The batch that is at work, of each source: Arrow record batches by partition.
 *
 * <p>A source is read by tasks that Spark has serialized, so it is found by its number.
 */
public final class Batches {
    private static final Map CURRENT = Collections.synchronizedMap(new HashMap());
    private static final Set TOUCHED = Collections.synchronizedSet(new HashSet());

    private static final Map NARROW = Collections.synchronizedMap(new HashMap());

    private Batches() {}

    static void put(long source, byte[][][] partitions) {
        CURRENT.put(Long.valueOf(source), partitions);
    }

    static void remove(long source) {
        CURRENT.remove(Long.valueOf(source));
    }

    static byte[][] of(long source, int partition) {
        touch(source);
        byte[][][] all = (byte[][][]) CURRENT.get(Long.valueOf(source));
        if (all == null) {
            throw new IllegalStateException("the batch of this frame is gone: use it no longer");
        }
        return partition < all.length ? all[partition] : new byte[0][];
    }

    /** Something has asked for rows, or for the partitions that they are in. */
    static void touch(long source) {
        TOUCHED.add(Long.valueOf(source));
    }

    static void untouch(long source) {
        TOUCHED.remove(Long.valueOf(source));
    }

    static boolean isTouched(long source) {
        return TOUCHED.contains(Long.valueOf(source));
    }

    /** From now on its batches have these columns alone, and these fields of a struct. */
    static void narrow(long source, StructType columns) {
        NARROW.put(Long.valueOf(source), columns);
    }

    /** Its columns; null: all of its schema. */
    static StructType narrowed(long source) {
        return (StructType) NARROW.get(Long.valueOf(source));
    }

    static void forget(long source) {
        NARROW.remove(Long.valueOf(source));
        CURRENT.remove(Long.valueOf(source));
        TOUCHED.remove(Long.valueOf(source));
    }
}
