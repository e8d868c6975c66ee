# Database: shadow processes read, and post to a log writer and data writers.
set $dir=/tmp
set $eventrate=0
set $iosize=2k
set $nshadows=200
set $ndbwriters=10
set $usermode=200000
set $filesize=10m
set $memperthread=1m
set $workingset=0
set $logfilesize=10m
set $nfiles=10
set $nlogfiles=1
set $directio=0
set $runtime=60

eventgen rate=$eventrate

define fileset name=tables,path=$dir,size=$filesize,entries=$nfiles,dirwidth=1024,prealloc=100
define fileset name=redolog,path=$dir,size=$logfilesize,entries=$nlogfiles,dirwidth=1024,prealloc=100

define process name=logwriter
{
  thread name=logwriter,memsize=$memperthread
  {
    flowop aiowrite name=log-write,filesetname=redolog,iosize=256k,random,directio=$directio,dsync
    flowop aiowait name=log-aiowait
    flowop semblock name=log-block,value=3200,highwater=1000
  }
}
define process name=dbwriter,instances=$ndbwriters
{
  thread name=dbwriter,memsize=$memperthread
  {
    flowop aiowrite name=db-write,filesetname=tables,iosize=$iosize,workingset=$workingset,
        random,iters=100,opennext,directio=$directio,dsync
    flowop hog name=db-hog,value=10000
    flowop semblock name=db-block,value=1000,highwater=2000
    flowop aiowait name=db-aiowait
  }
}
define process name=shadow,instances=$nshadows
{
  thread name=shadow,memsize=$memperthread
  {
    flowop read name=shadow-read,filesetname=tables,iosize=$iosize,workingset=$workingset,
        random,opennext,directio=$directio
    flowop hog name=shadow-hog,value=$usermode
    flowop sempost name=shadow-post-log,value=1,target=log-block,blocking
    flowop sempost name=shadow-post-db,value=1,target=db-block,blocking
    flowop eventlimit name=shadow-rate
  }
}
run $runtime
