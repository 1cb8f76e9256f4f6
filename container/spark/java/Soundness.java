package homeport.spark;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.Dependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionWithRandomSeed;
import org.apache.spark.sql.catalyst.expressions.MonotonicallyIncreasingID;
import org.apache.spark.sql.catalyst.expressions.Nondeterministic;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.PythonFuncExpression;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.SparkPartitionID;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.collection.Iterator;

/** Whether a plan gives each batch the rows that a new plan would give it. */
final class Soundness {
    private static final String PLANS = "org.apache.spark.sql.execution.";
    private static final String EXPRESSIONS = "org.apache.spark.sql.";

    /** Of these nothing lasts from run to run; all others are not known to be so. */
    private static final Set LASTING =
            new HashSet(
                    Arrays.asList(
                            new Object[] {
                                "WholeStageCodegenExec",
                                "InputAdapter",
                                "ProjectExec",
                                "FilterExec",
                                "RDDScanExec",
                                "LocalTableScanExec",
                                "OneRowRelationExec",
                                "RangeExec",
                                "GenerateExec",
                                "ExpandExec",
                                "UnionExec",
                                "CoalesceExec",
                                "SortExec",
                                "aggregate.HashAggregateExec",
                                "aggregate.ObjectHashAggregateExec",
                                "aggregate.SortAggregateExec",
                                "window.WindowExec",
                                "window.WindowGroupLimitExec",
                                "joins.SortMergeJoinExec",
                                "joins.ShuffledHashJoinExec",
                                "joins.BroadcastHashJoinExec",
                                "joins.BroadcastNestedLoopJoinExec",
                                "exchange.BroadcastExchangeExec",
                                "exchange.ReusedExchangeExec",
                                "exchange.ShuffleExchangeExec"
                            }));

    /** The same, by workers in Python. */
    private static final Set PYTHON =
            new HashSet(
                    Arrays.asList(
                            new Object[] {
                                "python.BatchEvalPythonExec",
                                "python.ArrowEvalPythonExec",
                                "python.MapInPandasExec",
                                "python.MapInArrowExec",
                                "python.FlatMapGroupsInPandasExec",
                                "python.FlatMapGroupsInArrowExec",
                                "python.ArrowAggregatePythonExec",
                                "python.ArrowWindowPythonExec"
                            }));

    /** What hangs on a plan that only has these is the same for all batches. */
    private static final Set FIXED =
            new HashSet(
                    Arrays.asList(
                            new Object[] {
                                "WholeStageCodegenExec",
                                "InputAdapter",
                                "ProjectExec",
                                "FilterExec",
                                "RDDScanExec",
                                "LocalTableScanExec",
                                "RangeExec",
                                "GenerateExec",
                                "SortExec",
                                "aggregate.HashAggregateExec",
                                "aggregate.ObjectHashAggregateExec",
                                "aggregate.SortAggregateExec",
                                "window.WindowExec",
                                "window.WindowGroupLimitExec"
                            }));

    /** How rows that the job's function has itself become a frame, by Python's serializers. */
    private static final Set LOCAL =
            new HashSet(
                    Arrays.asList(
                            new Object[] {
                                "MapPartitionsRDD", "ParallelCollectionRDD", "PythonRDD"
                            }));

    /** Text that Spark takes for a point in time; a time zone may follow. */
    private static final Pattern MOMENT =
            Pattern.compile(
                    "[^\\p{Alnum}]*(now|today|tomorrow|yesterday)(?!\\p{Alpha}).*",
                    Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

    /** The same within a text of SQL; a backslash there may stand for any letter. */
    private static final Pattern SAID =
            Pattern.compile(
                    "(now|today|tomorrow|yesterday)(?!\\p{Alpha})|\\\\", Pattern.CASE_INSENSITIVE);

    private boolean needsScheduler;

    /** Whether what {@link #reason} has looked at takes more than one task of one thread. */
    boolean needsScheduler() {
        return needsScheduler;
    }

    /** Why the plan serves one batch alone; null: it serves all. */
    String reason(QueryExecution query) {
        String found = inLogical(query.analyzed());
        return found != null ? found : inPhysical(query.executedPlan());
    }

    /** The same of what the plan has become. */
    static String reason(RDD rdd) {
        if (rdd.getStorageLevel().isValid() || rdd.isCheckpointed()) {
            return "it keeps rows of a batch";
        }
        Iterator all = rdd.dependencies().iterator();
        while (all.hasNext()) {
            Dependency one = (Dependency) all.next();
            boolean isWide = one instanceof ShuffleDependency;
            String found = isWide && readsBatch(one.rdd()) ? "it shuffles" : reason(one.rdd());
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    private static boolean readsBatch(RDD rdd) {
        boolean reads = rdd instanceof BatchRdd && !((BatchRdd) rdd).isStanding();
        Iterator all = rdd.dependencies().iterator();
        while (!reads && all.hasNext()) {
            reads = readsBatch(((Dependency) all.next()).rdd());
        }
        return reads;
    }

    /** Rows that the job's function has itself, or that stand still until the plan is renewed. */
    private static boolean isFixed(RDD rdd) {
        return rdd instanceof BatchRdd ? ((BatchRdd) rdd).isStanding() : isLocal(rdd);
    }

    private static boolean isLocal(RDD rdd) {
        boolean isLocal = LOCAL.contains(rdd.getClass().getSimpleName());
        isLocal = isLocal && !rdd.getStorageLevel().isValid();
        Iterator all = rdd.dependencies().iterator();
        while (isLocal && all.hasNext()) {
            isLocal = isLocal(((Dependency) all.next()).rdd());
        }
        return isLocal;
    }

    private static String inLogical(QueryPlan plan) {
        String found = inExpressions(plan.expressions().iterator());
        Iterator all = plan.children().iterator();
        while (found == null && all.hasNext()) {
            found = inLogical((QueryPlan) all.next());
        }
        return found;
    }

    private String inPhysical(SparkPlan plan) {
        String name = nameOf(plan);
        boolean isOfPython = PYTHON.contains(name);
        boolean isShuffle = name.equals("exchange.ShuffleExchangeExec");
        boolean isSent = isShuffle || name.equals("exchange.BroadcastExchangeExec");
        needsScheduler = needsScheduler || isOfPython || isShuffle;
        if (!isOfPython && !LASTING.contains(name)) {
            return "its node " + plan.nodeName() + " is for one run";
        }
        if (plan instanceof RDDScanExec) {
            RDD rows = ((RDDScanExec) plan).rdd();
            if (!(rows instanceof BatchRdd) && !isLocal(rows)) {
                return "it reads rows that were made for one run";
            }
            needsScheduler = needsScheduler || !(rows instanceof BatchRdd);
        }
        String found = inExpressions(plan.expressions().iterator());
        Iterator all = plan.children().iterator();
        while (found == null && all.hasNext()) {
            SparkPlan child = (SparkPlan) all.next();
            String sent = isShuffle ? "it shuffles" : "it sends rows of a batch to all";
            found = isSent && !isFixed(child) ? sent : inPhysical(child);
        }
        return found;
    }

    private static boolean isFixed(SparkPlan plan) {
        boolean isFixed = FIXED.contains(nameOf(plan));
        if (plan instanceof RDDScanExec) {
            isFixed = isFixed(((RDDScanExec) plan).rdd());
        }
        Iterator all = plan.children().iterator();
        while (isFixed && all.hasNext()) {
            isFixed = isFixed((SparkPlan) all.next());
        }
        return isFixed;
    }

    private static String nameOf(SparkPlan plan) {
        String name = plan.getClass().getName();
        return name.startsWith(PLANS) ? name.substring(PLANS.length()) : name;
    }

    private static String inExpressions(Iterator all) {
        String found = null;
        while (found == null && all.hasNext()) {
            found = inExpression((Expression) all.next());
        }
        return found;
    }

    private static String inExpression(Expression one) {
        String found = ofOne(one);
        if (found == null) {
            found = inExpressions(one.children().iterator());
        }
        if (found == null && one instanceof RuntimeReplaceable) {
            // What runs in its place; its children need not have it.
            found = inExpression(((RuntimeReplaceable) one).replacement());
        }
        return found;
    }

    private static String ofOne(Expression one) {
        String name = one.prettyName();
        if (one instanceof PlanExpression) {
            return "it has a subquery";
        }
        boolean isCurrent = one.containsPattern(TreePattern$.MODULE$.CURRENT_LIKE());
        if (isCurrent || isMoment(one)) {
            return name + " has its value when it is planned";
        }
        if (isLiteral(one) && isTime(one) && saysMoment(one.origin())) {
            return "date'today' or the like has its value when it is planned";
        }
        if (one instanceof ExpressionWithRandomSeed) {
            return name + " has its seed when it is planned";
        }
        boolean isNumber =
                one instanceof MonotonicallyIncreasingID || one instanceof SparkPartitionID;
        boolean isOfJob =
                one instanceof UserDefinedExpression && !(one instanceof PythonFuncExpression);
        if ((one instanceof Nondeterministic && !isNumber) || (isOfJob && !one.deterministic())) {
            return name + " is not deterministic";
        }
        boolean isOfSpark = one.getClass().getName().startsWith(EXPRESSIONS);
        return isOfSpark ? null : name + " is not Spark's own";
    }

    /** Text such as "now", which becomes a point in time when it is planned. */
    private static boolean isMoment(Expression one) {
        if (!(one instanceof Cast) || !((Cast) one).child().foldable()) {
            return false;
        }
        Expression text = ((Cast) one).child();
        return isTime(one) && (MOMENT.matcher(text.toString()).matches() || !isLiteral(text));
    }

    private static boolean isTime(Expression one) {
        Object type = one.dataType();
        return type instanceof TimestampType
                || type instanceof TimestampNTZType
                || type instanceof DateType;
    }

    /**
     * Whether the text of SQL that an expression was written as may be a moment's: what Spark has
     * read of it, a point in time, shows no more.
     */
    private static boolean saysMoment(Origin origin) {
        if (origin.sqlText().isEmpty()) {
            return false;
        }
        String text = (String) origin.sqlText().get();
        if (!origin.startIndex().isEmpty() && !origin.stopIndex().isEmpty()) {
            int first = ((Integer) origin.startIndex().get()).intValue();
            int last = ((Integer) origin.stopIndex().get()).intValue();
            int points = text.codePointCount(0, text.length());
            if (0 <= first && first <= last && last < points) {
                int begin = text.offsetByCodePoints(0, first);
                text = text.substring(begin, text.offsetByCodePoints(begin, last + 1 - first));
            }
        }
        return SAID.matcher(text).find();
    }

    private static boolean isLiteral(Expression one) {
        return one instanceof org.apache.spark.sql.catalyst.expressions.Literal;
    }
}
