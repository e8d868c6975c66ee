# Random reads of one file beside random writes to it.
set $dir=/tmp
set $filesize=5g
set $iosize=8k
set $nthreads=1
set $workingset=0
set $directio=0
set $runtime=60

define file name=largefile,path=$dir,size=$filesize,prealloc,paralloc

define process name=randomaccess
{
  thread name=reader,memsize=5m,instances=$nthreads
  {
    flowop read name=read-random,filename=largefile,iosize=$iosize,random,workingset=$workingset,directio=$directio
  }
  thread name=writer,memsize=5m,instances=$nthreads
  {
    flowop write name=write-random,filename=largefile,iosize=$iosize,random,workingset=$workingset,directio=$directio
  }
}
run $runtime
